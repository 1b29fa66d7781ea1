"""Our models, filters and metrics in the harness's registries: what newer releases find through our entry points."""

from __future__ import annotations

# The harness registers its own models only while its registry is empty, so they come first.
import lm_eval.models  # noqa: F401
from lm_eval.api.registry import model_registry

from qilin_tasks.harness.backends import PREFIX_CACHED


def register() -> None:
    """Make the harness know `qilin-baseline`, `qilin-vllm` and our components; calling it again changes nothing."""
    from qilin_tasks.harness import (
        baseline,  # noqa: F401
        components,  # noqa: F401
    )

    # By name only, for its module imports vLLM.
    if PREFIX_CACHED not in model_registry:
        model_registry.register(PREFIX_CACHED, target="qilin_tasks.harness.vllm_prefix:PrefixCachedVLLM")
