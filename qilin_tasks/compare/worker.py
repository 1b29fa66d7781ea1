"""The process of one model in a comparison: loads it once, runs its tasks, keeps every response, writes whole results.

`python -m qilin_tasks.compare.worker job.json`; the comparison (qilin_tasks.compare) writes the job and reads the
status files. The process ends itself, and all that it started, when its standard input closes: its parent is gone then.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from qilin_tasks.compare.budget import Limits, Spending
from qilin_tasks.compare.secrets import blot, redact, resolve, secret_values
from qilin_tasks.errors import DataError, QilinTasksError
from qilin_tasks.files import locked, write_whole
from qilin_tasks.harness.evaluate import Evaluation, evaluate, setup_logging
from qilin_tasks.harness.machine import describe_machine_once
from qilin_tasks.harness.models import load_model, uses_chat_template
from qilin_tasks.harness.publishing import hub_arguments, log_to_wandb
from qilin_tasks.harness.response_store import ResponseStore
from qilin_tasks.harness.stored import Progress, Stopped, StoredLM
from qilin_tasks.harness.task_manager import task_manager
from qilin_tasks.harness.usage import Tally
from qilin_tasks.parsing.answers import REFUSED, REFUSED_RATE
from qilin_tasks.results.asides import add_asides
from qilin_tasks.signature import signature_parts

#: A killed predecessor needs a moment to die.
LOCK_SECONDS = 60.0


def die_with_parent() -> None:
    """End this process group as soon as standard input closes."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        os.killpg(os.getpgid(0), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


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


class Spender:
    """What this process asked for so far, and whether it may go on."""

    def __init__(self, limits: Limits | None) -> None:
        self.limits = limits
        self.tallies: list[Tally] = []

    def now(self, tallies: Sequence[Tally] | None = None) -> Spending:
        """The sums over all stores, or over some."""
        names = [field.name for field in fields(Spending)]
        rows = self.tallies if tallies is None else tallies
        return Spending(**{name: sum(getattr(row, name) for row in rows) for name in names})

    def stopping(self) -> bool:
        """Whether nothing more may be asked. Raises SettingError where that can't be told."""
        return self.limits is not None and self.limits.reached(self.now())


def run_task(job: Mapping[str, Any], planned: Mapping[str, Any], model: Any, status: Status) -> None:
    """Ask, score and write one task; the folder of the task appears whole. Raises what the task raises."""
    arguments = redact(job["args"])
    # Model arguments in the metadata let a task check its prompts against the model's length.
    metadata = {**arguments, **job["metadata"]}
    done = evaluate(
        model,
        planned["name"],
        manager=task_manager([planned["name"]], metadata=metadata, include_path=job["include_path"]),
        folder=Path(job["folder"]),
        chat=uses_chat_template(job["backend"], model, job["chat_template"]),
        arguments=arguments,
        hub=hub_arguments(resolve(job["hf_hub_log_args"])),
        num_fewshot=job["num_fewshot"],
        batch_size=job["batch_size"],
        limit=job["limit"],
        gen_kwargs=job["gen_kwargs"] or None,
        system_instruction=job["system_instruction"],
    )
    status.write("writing")
    _check(done, planned)
    if job["on_refusal"] == "empty":
        count_refusals(done)
    add_asides(done.samples, done.results["configs"][done.task].get("metadata") or {})
    done.results["config"]["model"] = job["backend"]
    done.results["compare"] = {
        "settings": job["settings"],
        "identity": job["identity"],
        "name": job["name"],
        "system_parts": job["system_parts"],
    }
    if isinstance(model, StoredLM) and model.store is not None:
        cost = {**asdict(model.store.spent()), "answers": len(model.store)}
        done.results["compare"] |= {"cost": cost, "prices": job["prices"]}
    if job["wandb_args"]:
        log_to_wandb(
            done.results,
            done.samples,
            task=done.task,
            name=f"{job['name']} {done.task}",
            arguments=resolve(job["wandb_args"]),
            config=redact(job["wandb_config_args"]),
        )
    done.save(source=job["backend"], name=job["name"])


def count_refusals(done: Evaluation) -> None:
    """Put `refused_rate` beside the metrics: the share of documents of which the server refused a request."""
    by_filter: dict[str, list[float]] = {}
    for sample in done.samples:
        refused = any(response == REFUSED for repeats in sample["resps"] for response in repeats)
        sample["metrics"] = [*sample["metrics"], REFUSED_RATE]
        sample[REFUSED_RATE] = float(refused)
        by_filter.setdefault(sample["filter"], []).append(float(refused))
    for name, values in by_filter.items():
        done.results["results"][done.task][f"{REFUSED_RATE},{name}"] = sum(values) / len(values)
    done.results["higher_is_better"].setdefault(done.task, {})[REFUSED_RATE] = False


def _check(done: Evaluation, planned: Mapping[str, Any]) -> None:
    """N and the data are those of the plan: old and new answers make one whole set, the same for every model."""
    effective = done.results["n-samples"][done.task]["effective"]
    filters = {sample["filter"] for sample in done.samples}
    if effective != planned["n"] or len(done.samples) != effective * len(filters):
        raise DataError(
            f"{done.task}: {len(done.samples)} samples of {effective} documents, but {planned['n']} were planned; the "
            "data changed while the comparison was running. Use another --out"
        )
    signature = (done.results["configs"][done.task].get("metadata") or {}).get("signature")
    there, wanted = (signature_parts(some).get("data") for some in (signature, planned["signature"]))
    if there != wanted:
        raise DataError(
            f"{done.task}: the data are {there}, planned were {wanted}; the data changed while the comparison was "
            "running. Use another --out"
        )


def run_job(job: Mapping[str, Any]) -> int:
    """Run all tasks of a job; one that fails leaves its traceback in the log, and the others go on. Returns 0 or 1.

    At the job's limits all that are not finished stop, with what was answered in their stores.
    """
    folder = Path(job["folder"])
    statuses = {task["name"]: Status(folder / "status" / f"{task['name']}.json") for task in job["tasks"]}
    spender = Spender(Limits.read(job["limits"]) if job["limits"] else None)
    if spender.stopping():
        for status in statuses.values():
            status.write("stopped")
        return 0
    try:
        for status in statuses.values():
            status.write("loading")
        describe_machine_once()
        model = load_model(
            job["backend"],
            resolve(job["args"]),
            batch_size=job["batch_size"],
            chunk=job["chunk"],
            on_refusal=job["on_refusal"],
        )
    except Exception as error:  # noqa: BLE001 (whatever a backend raises becomes a failed model, not a lost run)
        traceback.print_exc()
        for status in statuses.values():
            status.write("failed", error=f"the model can't be loaded: {message(error)}")
        return 1
    failed = 0
    stopped = False
    for planned in job["tasks"]:
        status = statuses[planned["name"]]
        tallies: list[Tally] = []
        if stopped:
            status.write("stopped")
            continue
        try:
            with contextlib.ExitStack() as stack:
                held = "held by another process: this comparison is running already"
                stack.enter_context(locked(status.path, seconds=LOCK_SECONDS, held=held))
                if isinstance(model, StoredLM):
                    path = folder / "responses" / f"{planned['name']}.sqlite"
                    store = stack.enter_context(ResponseStore(path, identity=job["identity"]))
                    spender.tallies.append(store.tally)
                    model.store, model.stopping = store, spender.stopping
                    model.progress = _progress(status, model, spender)
                    tallies = [store.tally]
                run_task(job, planned, model, status)
            status.write("finished", spent=spender.now(tallies).as_dict())
        except Stopped:
            status.write("stopped", spent=spender.now(tallies).as_dict())
            stopped = True
        except Exception as error:  # noqa: BLE001 (the same for a task)
            traceback.print_exc()
            status.write("failed", error=message(error), spent=spender.now(tallies).as_dict())
            failed += 1
    return 1 if failed else 0


def _progress(status: Status, model: StoredLM, spender: Spender) -> Progress:
    """How many of the requests are answered, how many of these the store had, and what was spent on the others."""

    def asking(done: int, total: int, reused: int) -> None:
        spent = spender.now(spender.tallies[-1:]).as_dict()
        status.write("asking", done=done, total=total, reused=reused, share=round(model.share, 4), spent=spent)

    return asking


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
