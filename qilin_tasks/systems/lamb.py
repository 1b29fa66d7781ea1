"""LAMB (You et al. 2020, arXiv 1904.00962, Algorithm 2), with the defaults of the official code's `torch_optimizer`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def lamb(
    parameters: Iterable[Any], *, learning_rate: float, weight_decay: float, betas: tuple[float, float], eps: float
) -> Any:
    """A torch optimizer: Adam's step without bias correction, scaled for each tensor by |weights| / |step|.

    The norm of the weights counts up to 10; the ratio is 1 where either norm is 0. Both as that package's defaults.
    """
    import torch

    class Lamb(torch.optim.Optimizer):
        @torch.no_grad()
        def step(self, closure: Any = None) -> Any:
            for group in self.param_groups:
                for weights in group["params"]:
                    if weights.grad is None:
                        continue
                    state = self.state[weights]
                    if not state:
                        state["mean"], state["square"] = torch.zeros_like(weights), torch.zeros_like(weights)
                    mean, square = state["mean"], state["square"]
                    mean.lerp_(weights.grad, 1 - betas[0])
                    square.mul_(betas[1]).addcmul_(weights.grad, weights.grad, value=1 - betas[1])
                    change = mean / (square.sqrt() + eps) + group["weight_decay"] * weights
                    size, length = weights.norm().clamp(max=10.0), change.norm()
                    ratio = torch.where((size > 0) & (length > 0), size / length, torch.ones_like(size))
                    weights.sub_(group["lr"] * ratio * change)

    return Lamb(parameters, {"lr": learning_rate, "weight_decay": weight_decay})
