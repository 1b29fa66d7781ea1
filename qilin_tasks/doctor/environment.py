"""The machine: Python, packages, the backend that generates, accelerators, disk."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from qilin_tasks.doctor.findings import Finding, failure
from qilin_tasks.errors import QilinTasksError
from qilin_tasks.harness import location
from qilin_tasks.harness.backends import BACKENDS, missing_packages

if TYPE_CHECKING:
    from packaging.requirements import Requirement

DISTRIBUTION = "qilin-tasks"
HARNESS = "lm-eval"
PYTHONS = ((3, 10), (3, 13))
GIB = 1 << 30
#: vLLM's default for `gpu_memory_utilization` (0.32, vllm/config/cache.py).
VLLM_CPU_SHARE = 0.92


def python_version() -> list[Finding]:
    """Whether this Python is one that the package is made for."""
    here = sys.version_info[:2]
    shown = f"{sys.version.split()[0]} ({sys.executable})"
    if PYTHONS[0] <= here <= PYTHONS[1]:
        return [Finding("python", "ok", shown)]
    wanted = " to ".join(".".join(map(str, version)) for version in PYTHONS)
    return [Finding("python", "fail", shown, f"use Python {wanted}")]


def requirements(extra: str = "") -> Iterator[Requirement]:
    """What this package's own metadata asks for, without extras or for one of them."""
    from packaging.requirements import Requirement

    for line in importlib.metadata.requires(DISTRIBUTION) or ():
        requirement = Requirement(line)
        marker = requirement.marker
        needed = marker is None or marker.evaluate({"extra": extra})
        if needed and (not extra or (marker is not None and not marker.evaluate({"extra": ""}))):
            yield requirement


def packages(extra: str = "") -> list[Finding]:
    """The packages that we need, each in a version that our metadata allows; one line, or one for each that isn't."""
    name = f"packages [{extra}]" if extra else "packages"
    try:
        wanted = list(requirements(extra))
    except importlib.metadata.PackageNotFoundError:
        fix = "pip install -e . in the checkout"
        return [Finding(name, "fail", f"{DISTRIBUTION} itself is not installed, its metadata is missing", fix)]
    there, faults = [], []
    for requirement in wanted:
        fix = f"pip install '{requirement.name}{requirement.specifier}'"
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            faults.append(Finding(name, "fail", f"{requirement.name} is not installed", fix))
            continue
        there.append(f"{requirement.name} {version}")
        if requirement.name == HARNESS:
            continue  # It has a range and a line of its own.
        if not requirement.specifier.contains(version, prereleases=True):
            detail = f"{requirement.name} {version} is not {requirement.specifier}"
            faults.append(Finding(name, "fail", detail, fix))
    return faults or [Finding(name, "ok", ", ".join(there))]


def harness() -> list[Finding]:
    """Whether the harness can run our tasks, and whether the tests know it."""
    try:
        there = location.find_harness()
    except QilinTasksError as error:
        return [failure("harness", error)]
    detail = f"lm-eval {there.version} in {there.tasks.parent}"
    return [Finding("harness", "warn" if there.untested else "ok", detail, there.untested)]


def backend(chosen: str | None) -> list[Finding]:
    """Whether the chosen backend can be imported; without a choice, which of them can, and at least one must."""
    if chosen is None:
        there = [name for name, backend in BACKENDS.items() if backend.packages and not missing_packages(name)]
        if there:
            return [Finding("backends", "ok", f"{', '.join(there)} (name one with --backend to require it)")]
        fix = "pip install 'qilin-tasks[vllm]', or [hf], or [api] for a served model"
        return [Finding("backends", "fail", "no backend of the harness can run a language model here", fix)]
    missing, extra = missing_packages(chosen), BACKENDS[chosen].extra
    if missing:
        fix = f"pip install 'qilin-tasks[{extra}]'" if extra else f"pip install {' '.join(missing)}"
        return [Finding(f"backend {chosen}", "fail", f"{', '.join(missing)} not installed", fix)]
    versions = [f"{module} {_version(module)}" for module in BACKENDS[chosen].packages]
    return [Finding(f"backend {chosen}", "ok", ", ".join(versions) or "needs nothing")]


def _importable(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "(version unknown)"


def accelerator() -> list[Finding]:
    """Whether torch sees the NVIDIA GPUs that the driver lists; no GPU at all is a warning. Starts none of them."""
    gpus = _gpus()
    if not _importable("torch"):
        detail = f"the driver lists {gpus}, torch is not installed" if gpus else "no GPU, no torch"
        return [Finding("accelerator", "warn", detail, "for vllm and hf: pip install 'qilin-tasks[vllm]' or [hf]")]
    try:
        import torch
    except (ImportError, OSError) as error:
        fix = "reinstall torch, and torchvision and torchaudio of the same build or not at all"
        return [Finding("accelerator", "fail", f"torch is installed but can't be imported: {error}", fix)]

    build = f"torch {torch.__version__}"
    if torch.cuda.is_available():
        return [Finding("accelerator", "ok", f"{build} sees {torch.cuda.device_count()} device(s): {gpus or 'CUDA'}")]
    if torch.backends.mps.is_available():
        return [Finding("accelerator", "ok", f"{build} sees Apple's GPU (--device mps)")]
    if not gpus:
        detail = f"{build}, no GPU: models run on the CPU, which is slow"
        return [Finding("accelerator", "warn", detail, "for vLLM without a GPU use its CPU build (README)")]
    if torch.version.cuda is None:
        fix = "install torch's CUDA build (pytorch.org) and vLLM for it"
        return [Finding("accelerator", "fail", f"the driver lists {gpus}, but {build} is a build without CUDA", fix)]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    fix = "unset CUDA_VISIBLE_DEVICES" if visible is not None else f"update the driver to one for {torch.version.cuda}"
    return [Finding("accelerator", "fail", f"the driver lists {gpus}, but {build} sees none of them", fix)]


def _gpus() -> str:
    """The GPUs as the driver's own tool names them, without opening one; empty where there is no driver."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    query = [tool, "--query-gpu=name,memory.free", "--format=csv,noheader"]
    try:
        listed = subprocess.run(query, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ", ".join(f"{line.strip()} free" for line in listed.stdout.splitlines() if line.strip())


def memory(meminfo: Path = Path("/proc/meminfo")) -> list[Finding]:
    """For vLLM's CPU build, which reserves a share of all memory at its start, and refuses where less is free.

    It does neither where VLLM_CPU_KVCACHE_SPACE gives the size of its cache (vllm/v1/worker/cpu_worker.py).
    """
    if not _importable("vllm") or "cpu" not in _version("vllm") or not meminfo.is_file():
        return []
    lines = (line.split() for line in meminfo.read_text(encoding="ascii").splitlines())
    kib = {words[0]: int(words[1]) for words in lines}
    share = kib["MemAvailable:"] / kib["MemTotal:"]
    detail = f"{kib['MemAvailable:'] * 1024 / GIB:.1f} of {kib['MemTotal:'] * 1024 / GIB:.1f} GiB available"
    if share >= VLLM_CPU_SHARE or os.environ.get("VLLM_CPU_KVCACHE_SPACE"):
        return [Finding("memory", "ok", detail)]
    fix = (
        "VLLM_CPU_KVCACHE_SPACE=4 (GiB of its cache) in the environment, "
        f"or --model_args …,gpu_memory_utilization={max(share - 0.1, 0.05):.2f} (on a CPU it is the share of memory)"
    )
    return [Finding("memory", "warn", f"{detail}; vLLM's CPU build asks for {VLLM_CPU_SHARE:.0%} by itself", fix)]


def disk(*, downloads: bool) -> list[Finding]:
    """Free space for results here (1 GiB), and for what the hub's cache is about to get.

    20 GiB with `downloads` (the notes table of Qilin takes several), else 2 GiB (a metric model).
    """
    cache = hub_cache()
    needs = [("results", Path.cwd(), 1), ("hub cache", cache, 20 if downloads else 2)]
    return [_space(f"disk, {name}", folder, gib) for name, folder, gib in needs]


def hub_cache() -> Path:
    """The folder that huggingface_hub caches in."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def _space(check: str, folder: Path, gib: int) -> Finding:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free / GIB
    detail = f"{free:.1f} GiB free at {folder}"
    if not os.access(existing, os.W_OK):
        return Finding(check, "fail", f"{existing} can't be written", "choose another folder (HF_HOME for the cache)")
    if free < gib:
        return Finding(
            check, "fail", f"{detail}, {gib} GiB are needed", "free some, or move it (HF_HOME for the cache)"
        )
    return Finding(check, "ok", detail)
