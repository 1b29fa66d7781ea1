"""`qilin-tasks upstream`: static files, filled in, into a checkout, whole or not at all."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from support.upstream import fake_checkout, tree

from qilin_tasks.cli import main
from qilin_tasks.errors import DataError, QilinTasksError
from qilin_tasks.upstream.checkout import FOLDERS, write_upstream
from qilin_tasks.upstream.hosted import HOSTED
from qilin_tasks.upstream.task_table import with_row

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LINES = {"qilin": 200, "qilin_ranking": 200}
STATIC = {name: Path(str(files("qilin_tasks.upstream").joinpath(name))) for name in FOLDERS}


@pytest.mark.parametrize("name", FOLDERS)
def test_the_python_is_short_and_formatted_as_upstream_formats(name: str) -> None:
    paths = sorted(STATIC[name].glob("*.py"))
    assert [path.name for path in paths] == ["utils.py"]
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths) <= LINES[name]
    # Upstream's pyproject.toml sets nothing about the format: ruff's own defaults are its configuration.
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--no-cache", "--check", *map(str, paths)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("name", FOLDERS)
def test_nothing_optional_and_nothing_of_ours_is_imported_at_the_top(name: str) -> None:
    text = (STATIC[name] / "utils.py").read_text(encoding="utf-8")
    top = [line for line in text.splitlines() if re.match(r"(import|from) ", line)]
    assert not [line for line in top if re.search(r"qilin_tasks|rapidfuzz|jieba|bert_score|torch|transformers", line)]
    assert "qilin_tasks" not in text and "apply_filters" not in text


@pytest.mark.parametrize("name", FOLDERS)
def test_yaml_holds_deltas_and_few_metrics(name: str) -> None:
    bases = {path.name: path.read_text(encoding="utf-8") for path in STATIC[name].glob("_*_yaml")}
    for base, text in bases.items():
        metrics = re.findall(r"^  - metric: (\S+)$", text, re.MULTILINE)
        directions = re.findall(r"^    higher_is_better: (\w+)$", text, re.MULTILINE)
        assert len(directions) == len(metrics) <= 6 and set(directions) <= {"true", "false"}
        rates = [metric for metric in metrics if metric.endswith("_rate")]
        # Nothing can be wrong with a ranking that the harness makes of likelihoods.
        assert len(rates) == (0 if base == "_pointwise_yaml" else 2)
    for path in STATIC[name].glob("*.yaml"):
        config = path.read_text(encoding="utf-8")
        assert config.split("\n")[0].removeprefix("include: ") in bases and "aggregate_metric_list" not in config
        assert not re.search(r"[ \t]$", config, re.MULTILINE)


def test_the_data_sets_of_the_folders_hold_what_their_yaml_names() -> None:
    for name, folder in FOLDERS.items():
        for path in STATIC[name].glob("*.yaml"):
            config = yaml.safe_load(re.sub(r"!function ", "", path.read_text(encoding="utf-8")))
            assert config["dataset_name"] in HOSTED[folder.data].configs


@pytest.mark.parametrize("name", FOLDERS)
def test_owner_and_revision_are_filled_in(name: str, tmp_path: Path) -> None:
    checkout = fake_checkout(tmp_path)
    (folder,) = write_upstream(checkout, [name], dataset="someone", revision=COMMIT)
    bases = list(folder.glob("_*_yaml"))
    data = f"someone/{FOLDERS[name].data}"
    for base in bases:
        head = base.read_text(encoding="utf-8")
        assert head.startswith(f"dataset_path: {data}\ndataset_kwargs:\n  revision: {COMMIT}\n")
    assert f"`{data}`" in (folder / "README.md").read_text(encoding="utf-8")
    assert not [path for path, text in tree(folder).items() if b"OWNER" in text or b"REVISION" in text]
    assert sorted(tree(folder)) == sorted(path.name for path in STATIC[name].iterdir() if path.is_file())
    write_upstream(checkout, [name], dataset="someone", replace=True)
    assert not any("revision" in base.read_text(encoding="utf-8") for base in bases)


def test_only_the_folder_and_one_row_change(tmp_path: Path) -> None:
    checkout = fake_checkout(tmp_path)
    before = tree(checkout)
    write_upstream(checkout, ["qilin"], dataset="someone", revision=COMMIT)
    after = tree(checkout)
    changed = {path for path in after if before.get(path) != after[path]}
    assert {path for path in changed if not path.startswith("lm_eval/tasks/qilin/")} == {"lm_eval/tasks/README.md"}
    rows = after["lm_eval/tasks/README.md"].decode().splitlines()
    assert [row for row in rows if "qilin" not in row] == before["lm_eval/tasks/README.md"].decode().splitlines()
    assert rows.index(next(row for row in rows if row.startswith("| [qilin](qilin/README.md) |"))) == 5
    assert write_upstream(checkout, ["qilin"], dataset="someone", revision=COMMIT) and tree(checkout) == after


def refused(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The message of a refusal that left everything as it was."""
    before = tree(folder)
    assert main(["upstream", str(folder), *arguments]) == 1
    assert tree(folder) == before
    assert not [path for path in folder.rglob(".*") if path.name.startswith(".qilin")]
    return capsys.readouterr().err


def test_a_folder_that_is_no_checkout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "something"\n', encoding="utf-8")
    assert "no checkout of lm-evaluation-harness" in refused(tmp_path, capsys, "--dataset", "someone")


def test_other_files_of_that_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkout = fake_checkout(tmp_path)
    theirs = checkout / "lm_eval" / "tasks" / "qilin" / "theirs.yaml"
    theirs.parent.mkdir()
    theirs.write_text("task: theirs\n", encoding="utf-8")
    message = refused(checkout, capsys, "--dataset", "someone")
    assert "theirs.yaml" in message and "--replace" in message
    assert main(["upstream", str(checkout), "--dataset", "someone", "--replace"]) == 0
    assert "names no commit" in capsys.readouterr().out
    assert not theirs.exists()


def test_settings_that_mean_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkout = fake_checkout(tmp_path / "checkout")
    assert "choose from qilin" in refused(checkout, capsys, "--dataset", "someone", "--tasks", "qilim")
    assert "neither an owner" in refused(checkout, capsys, "--dataset", "no/such/folder")
    assert "40 hex digits" in refused(checkout, capsys, "--dataset", "someone", "--revision", "main")
    local = tmp_path / "documents"
    (local / "qilin-dqa" / "na").mkdir(parents=True)
    (local / "qilin-dqa" / "na" / "test-00000-of-00001.parquet").touch()
    message = refused(checkout, capsys, "--dataset", str(local))
    assert "bm25, bert, oracle" in message and "publish-docs" in message
    for context in ("bm25", "bert", "oracle"):
        (local / "qilin-dqa" / context).mkdir()
        (local / "qilin-dqa" / context / "test-00000-of-00001.parquet").touch()
    assert "has none" in refused(checkout, capsys, "--dataset", str(local), "--revision", COMMIT)


def test_a_checkout_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = fake_checkout(tmp_path)
    before, replace = tree(checkout), Path.replace

    def fails_for_the_table(self: Path, target: Path) -> Path:
        if Path(target).name == "README.md":
            raise PermissionError(13, "Permission denied", str(target))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fails_for_the_table)
    with pytest.raises(QilinTasksError, match="Permission denied"):
        write_upstream(checkout, ["qilin"], dataset="someone")
    assert tree(checkout) == before


def test_the_checkouts_own_lint_rules_apply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    checkout = fake_checkout(tmp_path)
    with (checkout / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("[tool.ruff]\nline-length = 60\n[tool.ruff.lint]\nselect = ['F']\n")
    (folder,) = write_upstream(checkout, ["qilin"], dataset="someone")
    written = (folder / "utils.py").read_text(encoding="utf-8")
    assert written != (STATIC["qilin"] / "utils.py").read_text(encoding="utf-8")
    with (checkout / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("[tool.ruff.lint.flake8-tidy-imports.banned-api.regex]\nmsg = 'no regex here'\n")
    text = (checkout / "pyproject.toml").read_text(encoding="utf-8").replace("['F']", "['TID251']")
    (checkout / "pyproject.toml").write_text(text, encoding="utf-8")
    with pytest.raises(QilinTasksError, match="no regex here"):
        write_upstream(checkout, ["qilin"], dataset="someone", replace=True)


def test_the_table_keeps_its_order_where_it_is_not_quite_sorted() -> None:
    rows = [
        "| [acl](acl/README.md) | x | y |",
        "| [zz](zz/README.md) | x | y |",
        "| okapi/b | x | y |",
        "| [race](r) | x | y |",
    ]
    text = "| Task | D | L |\n|---|---|---|\n" + "\n".join(rows) + "\n\ntail\n"
    found = with_row(text, name="qilin", description="d", languages="Chinese")
    lines = found.splitlines()
    assert lines.index(next(line for line in lines if "qilin" in line)) == 5
    assert [line for line in lines if "qilin" not in line] == text.splitlines()
    with pytest.raises(DataError, match="no table"):
        with_row("nothing here", name="qilin", description="d", languages="Chinese")


@pytest.mark.parametrize("name", FOLDERS)
def test_the_readme_follows_upstreams_template(name: str) -> None:
    text = (STATIC[name] / "README.md").read_text(encoding="utf-8")
    lines = text.splitlines()
    headings = ["## Paper", "### Citation", "### Groups, Tags, and Tasks", "#### Groups", "#### Tags", "#### Tasks"]
    positions = [lines.index(heading) for heading in [*headings, "### Checklist", "### Changelog"]]
    assert positions == sorted(positions)
    assert all(f"`{path.stem}`" in text for path in STATIC[name].glob("*.yaml"))
    yaml_text = "".join(path.read_text(encoding="utf-8") for path in STATIC[name].glob("_*_yaml"))
    for metric in re.findall(r"^  - metric: (\S+)$", yaml_text, re.MULTILINE):
        assert f"`{metric}`" in text
    commands = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    assert commands and all(line.startswith(("lm_eval run ", "  ")) for c in commands for line in c.splitlines())


def test_the_papers_rows_are_the_published_ones() -> None:
    from qilin_tasks.results.published import CONDITIONS, published_for

    text = (STATIC["qilin"] / "README.md").read_text(encoding="utf-8")
    rows = {condition: {row.system: row.values for row in published_for("dqa", condition)} for condition in CONDITIONS}
    for system in rows["na"]:
        cells = [
            f"{rows[condition][system][metric]:.3f}".lstrip("0")
            for metric in ("rouge_l", "bertscore_f1")
            for condition in CONDITIONS
        ]
        assert f"| paper: {system} | {' | '.join(cells)} |" in text
    assert text.count("| paper: ") == len(rows["na"]) == 5
    text = (STATIC["qilin_ranking"] / "README.md").read_text(encoding="utf-8")
    tables = [
        {row.system: row.values for row in published_for(f"{name}_test")} for name in ("search", "recommendation")
    ]
    for system in tables[0]:
        cells = [
            f"{table[system][metric]:.4f}".lstrip("0")
            for table in tables
            for metric in ("mrr@10", "mrr@100", "map@10", "map@100")
        ]
        assert f"| paper: {system} | {' | '.join(cells)} |" in text
    assert text.count("| paper: ") == len(tables[0]) == 5


def test_the_ranking_parser_is_short() -> None:
    lines = (STATIC["qilin_ranking"] / "utils.py").read_text(encoding="utf-8").splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("# One notation"))
    end = next(n for n, line in enumerate(lines) if line.startswith("def ranking_of"))
    assert end - start <= 100
