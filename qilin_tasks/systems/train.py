"""The loop of training: seeded, saved every so many steps, and the same to the end whether it was stopped or not."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from qilin_tasks import __version__
from qilin_tasks.errors import DataError, unknown
from qilin_tasks.files import locked, write_whole
from qilin_tasks.retrieval.encoders import model_identity
from qilin_tasks.retrieval.workspace import open_work
from qilin_tasks.signature import digest
from qilin_tasks.sources.qilin import QilinSource
from qilin_tasks.systems.examples import Example, draw, read_shown
from qilin_tasks.systems.lamb import lamb
from qilin_tasks.systems.losses import TRAINED
from qilin_tasks.systems.model_folder import check_new, put_model
from qilin_tasks.systems.processes import first_s, started, sum_gradients, together
from qilin_tasks.systems.recipe import Recipe, as_dict

logger = logging.getLogger(__name__)
BETAS, EPS = (0.9, 0.999), 1e-8


def train(
    source: QilinSource,
    *,
    system: str,
    config: str,
    recipe: Recipe,
    differs: list[str],
    model: str,
    out: Path,
    rows: int | None = None,
    steps: int | None = None,
    seed: int = 0,
    device: str = "auto",
    save_every: int = 500,
    progress: bool = False,
) -> Path:
    """Trains `model` on the clicks of a config and puts the folder `out` in place, whole or not at all.

    `steps` stops there; `training.json` beside the weights says what was done. The same command goes on after a stop
    from the last `save_every` steps. The processes of a `torchrun` train one model, which the first of them saves.
    SettingError where `out` is there already.
    """
    if system not in TRAINED:
        raise unknown("--system", system, TRAINED)
    check_new(out)
    import torch

    rank, count = started()
    with ExitStack() as stack:
        own_device = stack.enter_context(together(device))
        if rank == 0:
            stack.enter_context(locked(out))
        requests = read_shown(source, config, rows=rows)
        made = {
            "system": system,
            "config": config,
            "recipe": as_dict(recipe),
            "differs": differs,
            "model": model_identity(model),
            "seed": seed,
            "requests": len(requests),
            "data": [source.fingerprint(config), source.fingerprint("notes")],
            "code": __version__,
        }
        a_pass = math.ceil(len(requests) / recipe.batch_size)
        total = min(a_pass * recipe.epochs, steps or a_pass * recipe.epochs)
        # A head that the model lacks is drawn when it loads.
        torch.manual_seed(seed)
        trained = TRAINED[system](model, recipe, device=own_device)
        folder = Path(first_s(lambda: str(open_work(out, made))))
        losses = _steps(source, requests, trained, recipe, total, folder, seed, save_every, progress=progress)
        if rank == 0:
            put_model(out, trained, {**made, "steps": total, "losses": losses, "processes": count}, work=folder)
    return out


def _steps(
    source: QilinSource,
    requests: Any,
    trained: Any,
    recipe: Recipe,
    total: int,
    folder: Path,
    seed: int,
    save_every: int,
    *,
    progress: bool,
) -> list[float]:
    """All steps that are left; the loss of each step from the first on."""
    import torch
    from tqdm import tqdm

    module, (rank, _) = trained.module, started()
    optimizer = _optimizer(module, recipe)
    saved, losses = folder / "state.pt", []
    if saved.is_file():
        state = torch.load(saved, map_location="cpu", weights_only=True)
        module.load_state_dict(state["weights"])
        optimizer.load_state_dict(state["optimizer"])
        losses = state["losses"]
        logger.info("going on at step %d of %d", len(losses), total)
    module.train()
    batches = _batches(source, requests, recipe, seed, start=len(losses), total=total)
    bar = tqdm(
        batches, desc="training", unit=" steps", initial=len(losses), total=total, disable=not progress or rank > 0
    )
    for examples, notes in bar:
        step = len(losses)
        # What dropout draws depends on the step, not on where the run was stopped; shares draw each for itself.
        torch.manual_seed(int(digest([seed, step, *([rank] if rank else [])], length=8), 16))
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate * recipe.rate(step)
        optimizer.zero_grad()
        loss = trained.loss(examples, notes)
        if not torch.isfinite(loss):
            raise DataError(f"step {step}: the loss is {loss.item()}; lower --learning-rate, or look at the data")
        loss.backward()
        sum_gradients(module.parameters())
        optimizer.step()
        losses.append(float(loss.detach()))
        bar.set_postfix(loss=f"{losses[-1]:.4f}")
        if rank == 0 and len(losses) % save_every == 0 and len(losses) < total:
            state = {"weights": module.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses}
            write_whole(saved, lambda file, state=state: torch.save(state, file))  # type: ignore[misc]
    module.eval()
    return losses


def _optimizer(module: Any, recipe: Recipe) -> Any:
    import torch

    if recipe.optimizer == "lamb":
        return lamb(
            module.parameters(),
            learning_rate=recipe.learning_rate,
            weight_decay=recipe.weight_decay,
            betas=BETAS,
            eps=EPS,
        )
    return torch.optim.AdamW(
        module.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay, betas=BETAS, eps=EPS
    )


def _batches(
    source: QilinSource, requests: Any, recipe: Recipe, seed: int, *, start: int, total: int
) -> Iterator[tuple[list[Example], Any]]:
    """Batches from step `start` on; the notes of a pass are read once."""
    a_pass = math.ceil(len(requests) / recipe.batch_size)
    for epoch in range(start // a_pass, math.ceil(total / a_pass)):
        examples = draw(requests, epoch=epoch, seed=seed, negatives=recipe.negatives, note_count=source.note_count())
        first = max(start - epoch * a_pass, 0)
        last = min(total - epoch * a_pass, a_pass)
        left = examples[first * recipe.batch_size : last * recipe.batch_size]
        notes = source.notes({note for one in left for note in (one.clicked, *one.others)})
        for place in range(0, len(left), recipe.batch_size):
            yield left[place : place + recipe.batch_size], notes
