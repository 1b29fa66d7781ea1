"""The four DQA tasks through the real harness."""

from __future__ import annotations

import json

import pytest
from support.dqa_folder import dqa_row, write_dqa, write_real_notes
from support.evaluation import ScriptedModel, evaluate, metric

from qilin_tasks.dqa import scorer as scoring
from qilin_tasks.errors import SettingError

CONDITIONS = ("na", "bm25", "bert", "oracle")
TASKS = [f"qilin_dqa_{condition}" for condition in CONDITIONS]
COUNTS = (
    "bertscore_cut_rate",
    "bertscore_unknown_rate",
    "answer_chars",
    "empty_rate",
    "unfinished_reasoning_rate",
    "notes_shown",
    "notes_trimmed",
)


@pytest.fixture(autouse=True)
def sample(monkeypatch):
    monkeypatch.setenv("QILIN_DATA", "sample")


def baseline(strategy):
    from qilin_tasks.harness.baseline import QilinBaseline

    return QilinBaseline(strategy=strategy)


@pytest.fixture(scope="module")
def reference_run(minilm):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QILIN_DATA", "sample")
        metadata = {"bertscore": "on", "bertscore_model": str(minilm), "bertscore_layer": 4}
        return evaluate(["qilin_dqa"], baseline("reference"), metadata=metadata, log_samples=True)


def test_the_reference_scores_one_on_everything(reference_run):
    for task in TASKS:
        for name in ("rouge_l", "rouge_l_jieba", "bertscore_f1", "bertscore_precision", "bertscore_recall"):
            assert metric(reference_run, task, name) == pytest.approx(1.0, abs=1e-5), (task, name)
        assert metric(reference_run, task, "empty_rate") == 0.0


def test_every_metric_has_a_standard_error_and_stands_in_the_samples(reference_run):
    for task in TASKS:
        samples = reference_run["samples"][task]
        assert len(samples) >= 16
        for name in scoring.METRICS:
            assert isinstance(reference_run["results"][task][f"{name}_stderr,none"], float), name
            mean = sum(sample[name] for sample in samples) / len(samples)
            assert mean == pytest.approx(metric(reference_run, task, name))


def test_the_group_shows_the_mean_over_its_conditions(reference_run):
    for name in ("rouge_l", "bertscore_f1"):
        mean = sum(metric(reference_run, task, name) for task in TASKS) / len(TASKS)
        assert reference_run["groups"]["qilin_dqa"][f"{name},none"] == pytest.approx(mean)
        assert isinstance(reference_run["groups"]["qilin_dqa"][f"{name}_stderr,none"], float)


def test_empty_scores_zero_on_everything(minilm):
    metadata = {"bertscore": "on", "bertscore_model": str(minilm), "bertscore_layer": 4}
    results = evaluate(["qilin_dqa_oracle"], baseline("empty"), metadata=metadata)
    for name in set(scoring.METRICS) - {"empty_rate", *COUNTS}:
        assert metric(results, "qilin_dqa_oracle", name) == 0.0, name
    assert metric(results, "qilin_dqa_oracle", "empty_rate") == 1.0


def test_lead_needs_notes_and_gains_from_better_ones():
    results = evaluate(TASKS, baseline("lead"))
    na, oracle = (metric(results, f"qilin_dqa_{c}", "rouge_l") for c in ("na", "oracle"))
    assert na == 0.0
    assert 0.05 < oracle < 1.0


def test_unknown_strategy_and_unfit_strategy():
    with pytest.raises(SettingError, match=r"strategy 'best': choose from .*empty, .*lead"):
        baseline("best")


def test_prompts_hold_instruction_notes_question_in_this_order():
    model = ScriptedModel("好")
    evaluate(["qilin_dqa_oracle", "qilin_dqa_na"], model)
    for request in model.seen:
        prompt, doc = request.args[0], request.doc
        assert prompt.endswith(f"问题：{doc['query']}\n回答：")
        positions = [prompt.index(f"【笔记{i}】") for i in range(1, len(doc["notes"]) + 1)]
        assert positions == sorted(positions)
        assert ("笔记" in prompt.split("问题：")[0]) == bool(doc["notes"])
        for note in doc["notes"]:
            assert note["title"] in prompt and note["content"] in prompt
        assert "{" not in prompt and "None" not in prompt


def test_prompts_are_what_the_harness_renders():
    from lm_eval.utils import apply_template

    model = ScriptedModel("好")
    results = evaluate(["qilin_dqa_bm25"], model)
    template = results["configs"]["qilin_dqa_bm25"]["doc_to_text"]
    assert [request.args[0] for request in model.seen] == [apply_template(template, r.doc) for r in model.seen]


def test_generation_is_greedy_in_the_logged_arguments():
    model = ScriptedModel("好")
    results = evaluate(["qilin_dqa_na"], model, log_samples=True)
    for sample in results["samples"]["qilin_dqa_na"]:
        arguments = sample["arguments"][0][1]
        assert (arguments["do_sample"], arguments["temperature"], arguments["until"]) == (False, 0.0, [])
    assert results["configs"]["qilin_dqa_na"]["repeats"] == 1


def test_the_chat_template_wraps_the_whole_prompt_in_one_turn():
    model = ScriptedModel("好")
    evaluate(["qilin_dqa_oracle"], model, apply_chat_template=True)
    for request in model.seen:
        assert request.args[0].count("<|user|>") == 1 and request.args[0].endswith("回答：<|assistant|>")


@pytest.mark.parametrize(
    ("answer", "empty", "unfinished"),
    [
        ("<think>想一想</think>{reference}", 0.0, 0.0),
        ("想一想</think>\n{reference}", 0.0, 0.0),
        ("<think>想一想 {reference}", 1.0, 1.0),
        ("", 1.0, 0.0),
        ("<think></think>", 1.0, 0.0),
    ],
)
def test_reasoning_is_stripped_and_unfinished_reasoning_is_no_answer(answer, empty, unfinished):
    model = ScriptedModel(lambda request: answer.format(reference=request.doc["reference"]))
    results = evaluate(["qilin_dqa_na"], model, log_samples=True)
    assert metric(results, "qilin_dqa_na", "rouge_l") == pytest.approx(1.0 - empty)
    assert metric(results, "qilin_dqa_na", "empty_rate") == empty
    assert metric(results, "qilin_dqa_na", "unfinished_reasoning_rate") == unfinished
    shown = results["samples"]["qilin_dqa_na"][0]
    assert shown["filtered_resps"] == [shown["doc"]["reference"] if not empty else ""]


class OpensReasoning(ScriptedModel):
    def apply_chat_template(self, chat_history, add_generation_prompt=True):
        return super().apply_chat_template(chat_history) + "<think>\n"


@pytest.mark.parametrize(("answer", "unfinished"), [("还在想", 1.0), ("想好了</think>答", 0.0)])
def test_a_chat_template_that_opens_the_reasoning(answer, unfinished):
    results = evaluate(["qilin_dqa_na"], OpensReasoning(answer), apply_chat_template=True)
    assert metric(results, "qilin_dqa_na", "unfinished_reasoning_rate") == unfinished
    with pytest.raises(SettingError, match="think_end_token '</think>'"):
        evaluate(
            ["qilin_dqa_na"],
            OpensReasoning(answer),
            apply_chat_template=True,
            metadata={"think_end_token": "</think>"},
        )


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "长" * 100_000,
        "🙂🙃🧋",
        "<script>alert(1)</script>\x00\x1b[31m",
        "\ud83d\udc00半个\ud83d",
        None,
        "\u200b\u200d",
        "a" * 1000,
    ],
    ids=["empty", "huge", "emoji", "html", "surrogates", "none", "zero-width", "one-word"],
)
def test_whatever_a_model_writes_is_scored(answer, minilm, tmp_path):
    folder = write_dqa(
        tmp_path, [dqa_row(i, query="问", dqa_output=f"答案是{i}个。") for i in range(3)], [("题", "文")]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QILIN_DATA", str(folder))
        metadata = {"bertscore": "on", "bertscore_model": str(minilm), "bertscore_layer": 4}
        results = evaluate(["qilin_dqa_na"], ScriptedModel(answer), metadata=metadata, log_samples=True)
    for name in scoring.METRICS:
        assert 0.0 <= metric(results, "qilin_dqa_na", name) < float("inf"), name
    json.dumps(results["samples"], default=str)


def test_bertscore_off_leaves_it_out_and_says_so(caplog):
    results = evaluate(["qilin_dqa_na"], ScriptedModel("好"))
    assert not any("bertscore" in key for key in results["results"]["qilin_dqa_na"])
    assert "qilin_dqa_na: without bertscore_f1, bertscore_precision," in caplog.text
    assert "|bertscore:off|" in results["configs"]["qilin_dqa_na"]["metadata"]["signature"]


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"context": "bm26"}, "context 'bm26': choose from"),
        ({"note_char": 3}, "did you mean 'note_chars'"),
        ({"bertscore": "on", "bertscore_model": "/nowhere/model"}, "/nowhere/model"),
    ],
)
def test_bad_settings_stop_before_anything_is_generated(metadata, message):
    model = ScriptedModel("好")
    with pytest.raises(Exception, match=message):
        evaluate(["qilin_dqa_oracle"], model, metadata=metadata)
    assert model.seen == []


def test_an_unknown_metric_is_named():
    from lm_eval.tasks import TaskManager

    from qilin_tasks import tasks_folder

    manager = TaskManager(include_path=str(tasks_folder()), include_defaults=False, metadata={"bertscore": "off"})
    entry = manager.task_index["qilin_dqa_na"]
    bad = [{"metric": "rouge_m", "aggregation": "mean", "higher_is_better": True}]
    with pytest.raises(SettingError, match=r"metric 'rouge_m': choose from answer_chars"):
        manager._factory.build(entry, overrides={"metric_list": bad}, registry=manager.task_index)


def signature_of(metadata=None, **options):
    results = evaluate(["qilin_dqa_bm25"], ScriptedModel("好"), metadata=metadata, **options)
    return results["configs"]["qilin_dqa_bm25"]["metadata"]["signature"]


def test_everything_that_changes_a_number_is_in_the_signature():
    plain = signature_of()
    assert plain == signature_of()
    assert plain.startswith("dqa|ctx:bm25|k:5|note:600|total:4000|answers:all|")
    changed = [
        signature_of({"top_k": 3}),
        signature_of({"note_chars": 100}),
        signature_of({"context_chars": 900}),
        signature_of({"answers": "engaged"}),
        signature_of(gen_kwargs="max_gen_toks=7"),
        signature_of(apply_chat_template=True),
        signature_of(system_instruction="只用一句话回答"),
        signature_of(limit=3),
        signature_of(samples={"qilin_dqa_bm25": [1, 2, 5]}),
    ]
    assert len({plain, *changed}) == 10


def test_prompts_that_the_model_cannot_hold_are_refused_before_generation(tiny_llm):
    model = ScriptedModel("好")
    with pytest.raises(SettingError, match=r"longest prompt has \d+ tokens and 1024 are kept .* holds 1100"):
        evaluate(["qilin_dqa_oracle"], model, metadata={"pretrained": str(tiny_llm), "max_model_len": 1100})
    assert model.seen == []


def test_real_notes_in_all_conditions(tmp_path, shared, monkeypatch):
    monkeypatch.setenv("QILIN_DATA", str(write_real_notes(tmp_path, shared)))
    results = evaluate(["qilin_dqa"], baseline("lead"))
    scores = {condition: metric(results, f"qilin_dqa_{condition}", "rouge_l") for condition in CONDITIONS}
    assert scores["na"] == 0.0
    assert scores["oracle"] > scores["bm25"] > 0.05
    assert all(metric(results, task, "notes_shown") == 5.0 for task in ("qilin_dqa_bm25", "qilin_dqa_bert"))
