"""A family's README in upstream's template, with its tasks and the evaluation report filled in."""

from __future__ import annotations

from importlib.resources import files

from qilin_tasks.upstream.families import carried, carried_tasks
from qilin_tasks.upstream.measured import measured, report_table

METRICS = {
    "qilin_dqa_": ("rouge_l", "bertscore_f1"),
    "qilin_search_": ("mrr@10", "map@10"),
    "qilin_recommendation_": ("mrr@10", "map@10"),
    "reqa_": ("mrr", "r@1"),
}
GPU_COMMAND = (
    "lm_eval run --model vllm --model_args pretrained=Qwen/Qwen2.5-7B-Instruct,max_model_len=16384 --tasks {tasks} "
    "--batch_size auto --apply_chat_template --log_samples --output_path results"
)
MAIN = {"qilin": ("qilin_dqa", "qilin_ranking"), "reqa": ("reqa", "reqa_likelihood")}


def readme(name: str, *, dataset: str) -> str:
    """The text of `lm_eval/tasks/<name>/README.md`."""
    text = files("qilin_tasks.upstream").joinpath("templates").joinpath(f"{name}.md").read_text(encoding="utf-8")
    return text.replace("@DATASET@", dataset).replace("@GROUPS@", _groups(name)).replace("@REPORT@", _report(name))


def _groups(name: str) -> str:
    groups = [file for _, files in carried(name) for file in files if file.is_group]
    return "\n".join(f"* `{group.name}`: {', '.join(f'`{member}`' for member in group.members)}" for group in groups)


def _report(name: str) -> str:
    found, tasks = measured(), carried_tasks(name)
    versions = ", ".join(f"{package} {number}" for package, number in found.versions.items())
    commands = "\n".join(command for family, command in found.commands.items() if family.startswith(name))
    tables = []
    for prefix, metrics in METRICS.items():
        chosen = [
            task for task in tasks if task.startswith(prefix) and any(task in by_task for by_task in found.n.values())
        ]
        if chosen:
            tables.append(report_table(chosen, metrics))
    how = (
        f"{found.date}, {versions}; Linux, two CPU cores, no GPU. Measured over the sample "
        "that qilin-tasks carries (text made up for tests; the number of documents in brackets), with:"
    )
    limits = (
        "The sample is not the benchmark: its numbers show that chance, the first stage and the ceiling come out where "
        "they must, and stand beside the paper's only for their order. The empty column is filled by"
    )
    gpu = GPU_COMMAND.format(tasks=",".join(MAIN[name]))
    return "\n\n".join([how, f"```bash\n{commands}\n```", *tables, limits, f"```bash\n{gpu}\n```"])
