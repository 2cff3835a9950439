"""The faults of the program before this one, as far as they are about answering: none is here.

Numbers are those of the list of its seventeen faults. Those about diagnosis, editing, scoring and
the search itself are held in the tests of those rooms; 8 (no unique key) also in
``test_one_question``, 17 (gold answers) in ``test_leaks``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from actors.diagnoser.metrics import measure, seen_nodes
from prompts.trajectory import read_steps, submission_of
from protocol.documents import Package, PackageTexts, Skill
from protocol.rollout import Answered, Step
from protocol.rows import OutcomeRow, TraceRow
from protocol.settings import AgentSettings
from tests.rollout.house import jpeg, living, write_tree
from tests.rollout.script import PROMPTS, QUESTION, SKILL, call, settings, submit

pytestmark = pytest.mark.anyio
VIDEO = "-v1"


class Stored:
    """A rollout as the ledger has it."""

    def __init__(self, result: Answered, outcome: OutcomeRow, traces: Sequence[TraceRow]) -> None:
        self.result = result
        self.outcome = outcome
        self.traces = traces
        self.steps: tuple[Step, ...] = read_steps(traces)


async def _answer(
    folder: Path, script: Sequence[str], agent: AgentSettings | None = None
) -> Stored:
    write_tree(folder / "trees", VIDEO, picture=jpeg())
    agent = agent or settings(max_steps=9, vision="inline")
    async with living(folder, agent, {VIDEO: script}) as house:
        result = (await house.answer(VIDEO))[VIDEO]
    assert isinstance(result, Answered)
    return Stored(result, house.outcomes[VIDEO], house.traces(VIDEO))


LOOKS = [
    call("search_similar", {"query": "oven bread"}),
    call("view_node", {"node_id": f"{VIDEO}_L2_000"}),
    call("search_subtitles", {"query": "tasty"}),
    call("observe_frame", {"node_ids": [f"{VIDEO}_L2_000"], "question": "What is there?"}),
]


async def test_fault_1_replies_and_confidence_are_stored(tmp_path: Path) -> None:
    """Format and calibration are measured on what the model said, not on what its tools said."""
    stored = await _answer(tmp_path, ["mumble", *LOOKS, submit("C", evidence="n")])
    assert [step.raw for step in stored.steps] == ["mumble", *LOOKS, submit("C", evidence="n")]
    metrics = measure(stored.steps, right=False, max_calls=9)
    assert metrics.format_compliance == pytest.approx(5 / 6)
    assert (metrics.confidence, metrics.calibration) == (0.8, "high_conf_wrong")


async def test_fault_2_and_16_every_tool_says_which_nodes_it_showed(tmp_path: Path) -> None:
    """A search has its hits as ground truth, and what it showed was seen."""
    stored = await _answer(tmp_path, [*LOOKS, submit("B")])
    shown = {step.tool: step.node_ids for step in stored.steps}
    assert set(shown["search_similar"]) == {f"{VIDEO}_L2_001", f"{VIDEO}_L1_001"}
    assert shown["view_node"] == (f"{VIDEO}_L2_000", f"{VIDEO}_L3_000")
    assert shown["search_subtitles"] == (f"{VIDEO}_L1_001",)
    assert set(shown["observe_frame"]) == {f"{VIDEO}_L2_000", f"{VIDEO}_L3_000"}
    for step in stored.steps[:-1]:
        assert all(node in step.observation or step.tool != "view_node" for node in step.node_ids)
    assert {f"{VIDEO}_L1_001", f"{VIDEO}_L2_001", f"{VIDEO}_L3_000"} <= seen_nodes(stored.steps)


async def test_fault_3_an_answer_without_a_look_is_a_step_like_any(tmp_path: Path) -> None:
    stored = await _answer(tmp_path, [submit("B")])
    assert [step.tool for step in stored.steps] == ["submit_answer"]
    assert measure(stored.steps).calls == 0


async def test_fault_4_a_fence_inside_a_fence_is_read(tmp_path: Path) -> None:
    inner = submit("B", evidence="the sign says:\n```\nOPEN\n```\nin red")
    stored = await _answer(tmp_path, [f"Here:\n```json\n{inner}\n```\nDone."])
    assert stored.result.right
    submission = submission_of(stored.steps)
    assert submission is not None
    assert "OPEN" in submission.evidence


@pytest.mark.parametrize("args", [{}, {"confidence": 0.9}, {"answer": None}, {"answer": "E"}])
async def test_fault_5_an_answer_without_a_letter_is_told_and_is_no_prediction(
    tmp_path: Path, args: dict[str, object]
) -> None:
    mended = await _answer(tmp_path / "mended", [call("submit_answer", args), submit("B")])
    assert (mended.result.letter, mended.result.stop) == ("B", "submitted")
    assert "Submit exactly one of A, B, C, D." in mended.steps[0].observation
    kept = await _answer(tmp_path / "kept", [call("submit_answer", args)])
    assert (kept.result.letter, kept.result.stop) == (None, "no_answer")
    assert kept.outcome.outcome == "wrong"


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("view_node", "L1_000"),
        ("view_node", None),
        ("view_node", {"node_id": ["a"]}),
        ("search_similar", {"query": "x", "k": "five"}),
        ("search_similar", {"query": "x", "k": 10**30}),
        ("search_similar", ["x"]),
        ("search_subtitles", {"query": "x", "start_s": "noon"}),
        ("observe_frame", {"node_ids": 7}),
        ("fly", {"to": "the moon"}),
    ],
)
async def test_fault_6_wrong_arguments_cost_a_step_and_not_the_question(
    tmp_path: Path, tool: str, args: object
) -> None:
    stored = await _answer(tmp_path, [call(tool, args), submit("B")])
    assert stored.result.right
    assert stored.steps[0].flags == ("bad_call",)
    assert (stored.outcome.bad_calls, stored.outcome.prompt_tokens) == (1, 200)


async def test_fault_10_the_promised_step_counter_is_there_and_an_answer_is_forced(
    tmp_path: Path,
) -> None:
    stored = await _answer(tmp_path, [*LOOKS, submit("B")], settings(max_steps=4, vision="inline"))
    notices = [step.notice for step in stored.steps]
    assert notices[:3] == ["Step 1 of 4.", "Step 2 of 4.", "Step 3 of 4."]
    assert notices[3].startswith("Last step. ")
    assert (stored.result.right, stored.outcome.forced_by) == (True, "steps")


def test_fault_14_a_class_without_a_skill_has_the_general_one() -> None:
    general = Skill(task_type="_default", text="# General\n")
    texts = PackageTexts(
        package=Package(skills="v1", prompts="v1"), skills=(SKILL, general), prompts=PROMPTS
    )
    assert texts.skill_for("Unheard Of") == general
    assert texts.skill_for(QUESTION.task_type) == SKILL


async def test_fault_15_the_tokens_of_every_model_are_counted(tmp_path: Path) -> None:
    """The agent's three replies and the viewer's one, 110 tokens each."""
    script = [LOOKS[0], LOOKS[3], submit("B")]
    stored = await _answer(tmp_path, script, settings(vision="describe"))
    assert (stored.outcome.prompt_tokens, stored.outcome.completion_tokens) == (400, 40)
