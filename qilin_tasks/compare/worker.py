"""The process of one model in a comparison: loads it once, runs its tasks, keeps every response, writes whole results.

`python -m qilin_tasks.compare.worker job.json`; the comparison (qilin_tasks.compare) writes the job and reads the
status files. The process ends itself, and all that it started, when its standard input closes: its parent is gone then.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import lm_eval
from lm_eval.api.registry import get_model
from lm_eval.loggers import EvaluationTracker
from lm_eval.utils import setup_logging

from qilin_tasks.compare.response_store import ResponseStore
from qilin_tasks.compare.secrets import blot, redact, resolve, secret_values
from qilin_tasks.errors import DataError, QilinTasksError
from qilin_tasks.files import UNFINISHED, locked, write_whole
from qilin_tasks.harness.servers import can_guard, guard
from qilin_tasks.harness.stored import StoredLM
from qilin_tasks.harness.task_manager import task_manager
from qilin_tasks.harness.vllm_stream import can_stream, stream
from qilin_tasks.parsing.answers import REFUSED, REFUSED_RATE

CHATS = ("local-chat-completions", "openai-chat-completions")
BASELINE = "qilin-baseline"
PREFIX_CACHED = "qilin-vllm"
#: These try `auto` with 64 sequences of the model's full length: for accelerators only.
PROBES_THE_DEVICE = ("hf", "hf-multimodal")
#: A killed predecessor needs a moment to die.
LOCK_SECONDS = 60.0


def die_with_parent() -> None:
    """End this process group as soon as standard input closes."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        os.killpg(os.getpgid(0), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


def load_model(job: Mapping[str, Any]) -> Any:
    """The harness's model of a job; chunked and stored, but for the baselines, which are quick and ask nobody."""
    if job["backend"] == BASELINE:
        from qilin_tasks.harness import baseline  # noqa: F401  (registers it)
    if job["backend"] == PREFIX_CACHED:
        from qilin_tasks.harness import vllm_prefix  # noqa: F401  (registers it)
    size = job["batch_size"]
    if size == "auto" and job["backend"] in PROBES_THE_DEVICE:
        import torch

        size = "auto" if torch.cuda.is_available() else 1
    model = get_model(job["backend"]).create_from_arg_obj(
        resolve(job["args"]), {"batch_size": size, **default_device(job)}
    )
    if job["backend"] == BASELINE:
        return model
    if size == "auto" and hasattr(model, "_detect_batch_size"):
        _detect_once(model)
    if can_guard(model):
        guard(model, on_refusal=job["on_refusal"])
    stored = StoredLM(model, chunk=job["chunk"])
    if can_stream(model):
        stream(stored)
    return stored


def default_device(job: Mapping[str, Any]) -> dict[str, str]:
    """As the harness's own command chooses: a GPU where there is one, else the CPU; the class alone wants CUDA."""
    if job["backend"] not in PROBES_THE_DEVICE or job["args"].get("device"):
        return {}
    import torch

    if torch.cuda.is_available():
        return {}
    return {"device": "mps" if torch.backends.mps.is_available() else "cpu"}


def _detect_once(model: Any) -> None:
    """The harness's hf backend looks for the largest batch at every call, which chunks make many."""
    detect = model._detect_batch_size
    found: list[Any] = []

    def once(requests: Any = None, pos: int = 0) -> Any:
        if requests is not None:
            return detect(requests, pos)
        if not found:
            found.append(detect())
        return found[0]

    model._detect_batch_size = once


def describe_machine_once(folder: Path) -> None:
    """The harness describes the machine in every results file, which takes seconds: here once for a comparison."""
    try:
        from torch.utils import collect_env
    except ImportError:
        return  # The harness then writes that torch is not there.
    describe: Callable[[], str] = collect_env.get_pretty_env_info
    about = f"{platform.node()} {sys.executable} {lm_eval.__version__} {importlib.metadata.version('torch')}"
    path = folder / ".plan" / f"machine-{hashlib.sha256(about.encode()).hexdigest()[:12]}.txt"

    def described() -> str:
        if not path.exists():
            write_whole(path, describe())
        return path.read_text(encoding="utf-8")

    collect_env.get_pretty_env_info = described


def uses_chat_template(job: Mapping[str, Any], model: Any) -> bool:
    """As the job says; else for every chat server and every tokenizer that has a template."""
    if job["chat_template"] is not None:
        return bool(job["chat_template"])
    if job["backend"] == BASELINE:
        return False
    return job["backend"] in CHATS or bool(getattr(getattr(model, "tokenizer", None), "chat_template", None))


class Status:
    """The status file of a (model, task): what the comparison shows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last = 0.0

    def write(self, state: str, **more: Any) -> None:
        """Say how it stands; progress is written twice a second at most."""
        now = time.time()
        if state == "asking" and now - self._last < 0.5 and more["done"] < more["total"]:
            return
        self._last = now
        write_whole(self.path, json.dumps({"state": state, "time": now, **more}))

    def asking(self, done: int, total: int, reused: int) -> None:
        """How many of the requests are answered, and how many of these the store had."""
        self.write("asking", done=done, total=total, reused=reused)


def run_task(job: Mapping[str, Any], planned: Mapping[str, Any], model: Any, status: Status) -> None:
    """Ask, score and write one task; the folder of the task appears whole. Raises what the task raises."""
    task, folder = planned["name"], Path(job["folder"])
    arguments = redact(job["args"])
    tracker = EvaluationTracker(output_path=str(folder / f"{UNFINISHED}{task}"))
    shutil.rmtree(folder / f"{UNFINISHED}{task}", ignore_errors=True)
    # Model arguments in the metadata let a task check its prompts against the model's length.
    metadata = {**arguments, **job["metadata"]}
    results = lm_eval.simple_evaluate(
        model=model,
        model_args=arguments,
        tasks=[task],
        num_fewshot=job["num_fewshot"],
        batch_size=job["batch_size"],
        limit=job["limit"],
        gen_kwargs=job["gen_kwargs"] or None,
        apply_chat_template=uses_chat_template(job, model),
        system_instruction=job["system_instruction"],
        fewshot_as_multiturn=uses_chat_template(job, model),
        log_samples=True,
        evaluation_tracker=tracker,
        task_manager=task_manager([task], metadata=metadata, include_path=job["include_path"]),
        confirm_run_unsafe_code=False,
    )
    status.write("writing")
    samples = results.pop("samples")
    _check(results, samples, planned)
    if job["on_refusal"] == "empty":
        count_refusals(results, samples[task], task)
    results["config"]["model"] = job["backend"]
    results["compare"] = {"settings": job["settings"], "identity": job["identity"], "name": job["name"]}
    results["compare"]["system_parts"] = job["system_parts"]
    general = tracker.general_config_tracker
    general.model_source, general.model_name, general.model_name_sanitized = job["backend"], job["name"], "files"
    tracker.save_results_aggregated(results=results, samples=samples)
    tracker.save_results_samples(task_name=task, samples=samples[task])
    made = folder / f"{UNFINISHED}{task}" / "files"
    # The tracker logs a failure to write and goes on.
    if len(list(made.glob("results_*.json"))) != 1 or len(list(made.glob("samples_*.jsonl"))) != 1:
        raise DataError(f"{made}: the harness could not write its files (disk full? see the log above)")
    made.replace(folder / task)
    shutil.rmtree(folder / f"{UNFINISHED}{task}", ignore_errors=True)


def count_refusals(results: dict[str, Any], samples: list[dict[str, Any]], task: str) -> None:
    """Put `refused_rate` beside the metrics: the share of documents of which the server refused a request."""
    by_filter: dict[str, list[float]] = {}
    for sample in samples:
        refused = any(response == REFUSED for repeats in sample["resps"] for response in repeats)
        sample["metrics"] = [*sample["metrics"], REFUSED_RATE]
        sample[REFUSED_RATE] = float(refused)
        by_filter.setdefault(sample["filter"], []).append(float(refused))
    for name, values in by_filter.items():
        results["results"][task][f"{REFUSED_RATE},{name}"] = sum(values) / len(values)
    results["higher_is_better"].setdefault(task, {})[REFUSED_RATE] = False


def _check(results: Mapping[str, Any], samples: Mapping[str, Any], planned: Mapping[str, Any]) -> None:
    """N and the data are those of the plan: old and new answers make one whole set, the same for every model."""
    task = planned["name"]
    effective = results["n-samples"][task]["effective"]
    filters = {sample["filter"] for sample in samples[task]}
    if effective != planned["n"] or len(samples[task]) != effective * len(filters):
        raise DataError(
            f"{task}: {len(samples[task])} samples of {effective} documents, but {planned['n']} were planned; the data "
            "changed while the comparison was running. Use another --out"
        )
    signature = (results["configs"][task].get("metadata") or {}).get("signature")
    if data_part(signature) != data_part(planned["signature"]):
        raise DataError(
            f"{task}: the data are {data_part(signature)}, planned were {data_part(planned['signature'])}; the data "
            "changed while the comparison was running. Use another --out"
        )


def data_part(signature: str | None) -> str | None:
    """The data fingerprint of a signature: the part that must be the same for every model of a comparison."""
    return next((part for part in (signature or "").split("|") if part.startswith("data:")), None)


def run_job(job: Mapping[str, Any]) -> int:
    """Run all tasks of a job; one that fails leaves its traceback in the log, and the others go on. Returns 0 or 1."""
    folder = Path(job["folder"])
    statuses = {task["name"]: Status(folder / "status" / f"{task['name']}.json") for task in job["tasks"]}
    try:
        for status in statuses.values():
            status.write("loading")
        describe_machine_once(folder.parent)
        model = load_model(job)
    except Exception as error:  # noqa: BLE001 (whatever a backend raises becomes a failed model, not a lost run)
        traceback.print_exc()
        for status in statuses.values():
            status.write("failed", error=f"the model can't be loaded: {message(error)}")
        return 1
    failed = 0
    for planned in job["tasks"]:
        status = statuses[planned["name"]]
        try:
            with contextlib.ExitStack() as stack:
                held = "held by another process: this comparison is running already"
                stack.enter_context(locked(status.path, seconds=LOCK_SECONDS, held=held))
                if isinstance(model, StoredLM):
                    path = folder / "responses" / f"{planned['name']}.sqlite"
                    model.store = stack.enter_context(ResponseStore(path, identity=job["identity"]))
                    model.progress = status.asking
                run_task(job, planned, model, status)
            status.write("finished")
        except Exception as error:  # noqa: BLE001 (the same for a task)
            traceback.print_exc()
            status.write("failed", error=message(error))
            failed += 1
    return 1 if failed else 0


def message(error: Exception) -> str:
    """Our own errors say it all; others with their kind in front. A server may repeat a key: it is blotted out."""
    said = str(error) if isinstance(error, QilinTasksError) else f"{type(error).__name__}: {error}"
    return blot(said, secret_values())


def main(job_path: str) -> int:
    """Entry of the process."""
    die_with_parent()
    setup_logging("INFO")
    return run_job(json.loads(Path(job_path).read_text(encoding="utf-8")))


if __name__ == "__main__":
    code = main(sys.argv[1])
    sys.stdout.flush()
    sys.stderr.flush()
    # vLLM's engine processes and API threads are not waited for.
    os._exit(code)
