"""The (model, task) jobs of a comparison on a Ray cluster that shares the folder: same files, same resume."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from qilin_tasks.compare.budget import Limits
from qilin_tasks.compare.devices import gpus_of
from qilin_tasks.compare.processes import child_environment, run_job
from qilin_tasks.compare.specs import ModelSpec
from qilin_tasks.compare.state import Options, Pair, job_of
from qilin_tasks.errors import DependencyError, SettingError

POLL_SECONDS = 0.5


def run_on_ray(
    pairs: Sequence[Pair],
    options: Options,
    *,
    address: str,
    limits: Callable[[ModelSpec], Limits | None],
    poll: Callable[[], None],
) -> None:
    """Run every pair as a Ray task; `address` is `auto`, `host:port`, `ray://…` or `local` (this machine).

    Raises DependencyError without ray and SettingError where the cluster can't be reached or never has the GPUs.
    """
    try:
        import ray
    except ImportError as error:
        raise DependencyError("--ray needs the package ray: pip install 'qilin-tasks[ray]'") from error
    started = not ray.is_initialized()
    if started:
        try:
            if address == "local":
                # Loopback, so that no other machine can hand it work.
                ray.init(log_to_driver=False, include_dashboard=False, _node_ip_address="127.0.0.1")
            else:
                ray.init(address=address, log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise SettingError(
                f"--ray {address}: no Ray cluster answers there ({error}); `ray start --head` starts one"
            ) from error
    try:
        _check_gpus(pairs, ray.cluster_resources())
        remote: Any = ray.remote(max_retries=0)(run_job)
        running = []
        for pair in pairs:
            job = job_of(pair.model, options, [pair.task], identity=pair.model.identity(), limits=limits(pair.model))
            log = options.out.resolve() / pair.model.name / f"log-{pair.task.name}.txt"
            log.parent.mkdir(parents=True, exist_ok=True)
            bound = remote.options(num_cpus=1, num_gpus=gpus_of(pair.model), name=f"{pair.model.name} {pair.task.name}")
            running.append(bound.remote(job, child_environment(job, pair.model.environment), str(log)))
        while running:
            done, running = ray.wait(running, num_returns=len(running), timeout=POLL_SECONDS)
            poll()
            for reference in done:
                ray.get(reference)
    finally:
        if started:
            ray.shutdown()


def _check_gpus(pairs: Sequence[Pair], resources: dict[str, float]) -> None:
    there = resources.get("GPU", 0.0)
    for pair in pairs:
        if gpus_of(pair.model) > there:
            raise SettingError(
                f"model {pair.model.name!r} asks for {gpus_of(pair.model):g} GPUs, the Ray cluster has {there:g}: set "
                "`gpus:` in models.yaml (0 runs it on CPUs) or use a larger cluster"
            )
