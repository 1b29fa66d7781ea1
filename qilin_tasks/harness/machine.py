"""The description of the machine that the harness writes into every results file, without the seconds it takes."""

from __future__ import annotations

import importlib.metadata
from functools import cache
from typing import Any


def describe_machine_once() -> None:
    """Ask for it once in this process, and list the packages here: the harness starts pip for that, each time."""
    try:
        from torch.utils import collect_env
    except ImportError:
        return  # The harness then writes that torch is not there.
    if collect_env.get_pip_packages is not _packages:
        collect_env.get_pip_packages = _packages
        collect_env.get_pretty_env_info = cache(collect_env.get_pretty_env_info)


def _packages(run: Any, patterns: Any = None) -> tuple[str, str]:
    """As `torch.utils.collect_env.get_pip_packages`: the packages that matter to torch, `name==version` a line."""
    from torch.utils import collect_env

    names = ("PIP_PATTERNS", "COMMON_PATTERNS", "NVIDIA_PATTERNS", "ONEAPI_PATTERNS")
    wanted = patterns or [pattern for name in names for pattern in getattr(collect_env, name, ())]
    lines = {f"{found.metadata['Name']}=={found.version}" for found in importlib.metadata.distributions()}
    return "pip3", "\n".join(sorted(line for line in lines if any(pattern in line for pattern in wanted)))
