"""Faults of the owner's former diagnosis: each is named, and is not here.

The numbers are those of the domain report, section 3.13.
"""

from __future__ import annotations

import msgspec
import pytest

from actors.diagnoser.actor import DiagnoserActor
from actors.diagnoser.cases import gather
from actors.diagnoser.judge import brief_of, judge
from actors.diagnoser.metrics import measure, seen_nodes
from actors.diagnoser.packs import case_packs
from prompts.templates import load_templates
from prompts.trajectory import read_steps
from protocol.base import Request
from protocol.diagnoser import Diagnosis
from protocol.ledger import Record, Recorded, Select, Selected
from protocol.llm import Chat, ChatAnswer, ChatFailed
from protocol.rows import DiagnosisRow
from tests.diagnoser.cases.build import CalibrationCase, calibration_cases, trace_rows
from tests.diagnoser.make import (
    REQUEST,
    SETTINGS,
    answer,
    call,
    diagnosed,
    failed,
    outcome,
    question,
    submit,
    verdict,
)
from tests.support.fakes import FakeAddress

pytestmark = pytest.mark.anyio
TEMPLATE = load_templates(["diagnose_answer"])["diagnose_answer"]


def case(name: str) -> CalibrationCase:
    """A realistic trajectory of the calibration set."""
    return next(case for case in calibration_cases() if case.name.startswith(name))


def prompt_of(found: CalibrationCase) -> tuple[str, tuple[int, ...]]:
    brief = brief_of(TEMPLATE, found.request, found.steps, max_trace_chars=12_000)
    return brief.prompt, brief.graded


async def said_of(reply: str, *rows: object) -> Diagnosis:
    async def chat(_: Chat) -> ChatAnswer:
        return answer(reply)

    steps = read_steps(rows)  # type: ignore[arg-type]  # stored steps, every one
    brief = brief_of(TEMPLATE, REQUEST, steps, max_trace_chars=2000)
    return await judge(chat, TEMPLATE, REQUEST, steps, brief)


def test_3_13_1_confidence_comes_from_what_was_stored() -> None:
    """Was: raw content was not stored, so that confidence was 0.5 for ever and nobody was sure."""
    raw = '{"thought": "", "action": {"tool": "submit_answer"}}'
    metrics = measure(read_steps([call(1, "view_node", raw=raw), submit(2, 0.85)]))
    assert (metrics.confidence, metrics.calibration) == (0.85, "high_conf_wrong")
    assert metrics.format_compliance == 1.0
    half = measure(read_steps([call(1, None, raw="I think"), submit(2, 0.85)]))
    assert half.format_compliance == 0.5


def test_3_13_1_every_step_has_its_raw_content_or_its_parts() -> None:
    """The judge sees what an unreadable reply said, not only that there was one."""
    rows = [call(1, None, raw="The boat, surely."), submit(2)]
    brief = brief_of(TEMPLATE, REQUEST, read_steps(rows), max_trace_chars=2000)
    assert "Unreadable reply: The boat, surely." in brief.prompt


def test_3_13_2_hits_of_a_search_are_ground_truth() -> None:
    """Was: a search had no node id, its ground truth was empty, every hit looked invented."""
    found = case("wrong_owner/ignored")
    prompt, graded = prompt_of(found)
    search = found.steps[0]
    assert search.tool == "search_similar"
    assert search.index in graded
    assert search.observation in prompt


def test_3_13_2_a_view_is_held_against_card_subtitle_and_children() -> None:
    """Was: subtitle and children were left out of the ground truth."""
    found = case("spoken_number/silent")
    prompt, graded = prompt_of(found)
    view = found.steps[1]
    assert view.index in graded
    for part in ("event_description: ", "subtitle: ", "Children (2):"):
        assert part in view.observation
    assert view.observation in prompt


async def test_3_13_2_only_calls_with_ground_truth_are_graded() -> None:
    """A refusal and a picture have none: whatever is said of them says nothing of extraction."""
    grade = {"kept": "nothing", "invented": "all"}
    reply = verdict(calls=[{"step": step, **grade} for step in (1, 2)])
    rows = (
        call(1, "view_node", '{"node_id": "x"}', observation="There is no node 'x'."),
        call(2, "observe_frame", "{}", '["v1_L3_001"]', observation="1 key frame"),
        submit(3),
    )
    found = await said_of(reply, *rows)
    assert (found.error_type, found.grades) == ("reasoning_failure", ())


async def test_3_13_3_an_answer_without_a_look_is_no_failed_extraction() -> None:
    """Was: the mean of no grades was 0.0, and an early submit an extraction failure."""
    found = await said_of(verdict(calls=[]), submit(1))
    assert found.error_type == "no_search"
    assert measure(read_steps([submit(1)])).early


async def test_3_13_4_fences_inside_a_reply_do_not_cut_it() -> None:
    """Was: a fence inside the JSON ended the reply."""
    finding = "It should have looked twice:\n```\nlook\n```\nand then answered."
    reply = f"Here it is:\n```json\n{verdict(finding=finding)}\n```\n"
    found = await said_of(reply, call(1, "view_node", "{}", '["v1_L1_000"]'), submit(2))
    assert (found.finding, found.degraded) == (finding, False)


@pytest.mark.parametrize("arguments", ["[]", "3", "null", "{broken", '{"node_id": ["x"], "k": {}}'])
async def test_3_13_6_arguments_that_are_no_object_do_not_stop_a_diagnosis(arguments: str) -> None:
    """Was: a TypeError lost the whole question."""
    rows = [call(1, "view_node", arguments), call(2, "submit_answer", arguments)]
    assert not (await said_of(verdict(calls=[]), *rows)).degraded


def test_3_13_7_lost_rows_are_counted_and_not_left_out() -> None:
    """Was: the accuracy over the rows that were found, and errors were dropped."""
    rows = [outcome(), outcome(question_id="q-7-2", outcome="missing", stop="missing")]
    gathered = gather(
        [question(), question("q-7-2")], rows, [call(1, None), submit(2)], [], max_calls=8
    )
    packs = case_packs(gathered, (), max_chars=600)
    assert (packs.system.answered, packs.missing) == (1, 1)


class Ledger:
    """Keeps rows by their key, as the real one does."""

    def __init__(self, *rows: object) -> None:
        self.traces = rows
        self.kept: dict[tuple[str, str], DiagnosisRow] = {}

    async def __call__(self, request: Request[object]) -> object:
        if isinstance(request, Select):
            wanted = {where.column: where.value for where in request.where}
            return Selected(
                rows=tuple(
                    row  # type: ignore[misc]  # stored steps
                    for row in self.traces
                    if all(getattr(row, name) == value for name, value in wanted.items())
                )
            )
        assert isinstance(request, Record)
        for row in request.rows:
            assert isinstance(row, DiagnosisRow)
            self.kept[(row.run_key, row.question_id)] = row
        return Recorded(rows=len(request.rows))


async def test_3_13_8_a_diagnosis_made_twice_is_one_row() -> None:
    """Was: no unique key, a second run doubled every row."""
    ledger = Ledger(call(1, "view_node", "{}", '["v1_L1_000"]'), submit(2))

    async def chat(_: Request[object]) -> object:
        return answer(verdict())

    actor = DiagnoserActor(SETTINGS, FakeAddress("llm", chat), FakeAddress("ledger", ledger))
    for _ in range(2):
        await actor.on_diagnose(REQUEST)
    assert len(ledger.kept) == 1
    assert DiagnosisRow.KEY == ("run_key", "question_id")


def test_3_13_12_answers_of_two_passes_are_two_answers() -> None:
    """Was: maps keyed by the question alone, so that one pass overwrote the other."""
    rows, traces, judged = [], [], []
    for run_key, finding in (("e1/order/s1", "First."), ("e1/order/s2", "Second.")):
        rows.append(outcome(run_key=run_key))
        traces.append(msgspec.structs.replace(submit(1), run_key=run_key))
        judged.append(diagnosed(run_key=run_key, finding=finding))
    gathered = gather([question()], rows, traces, judged, max_calls=8)
    (pack,) = case_packs(gathered, (), max_chars=600).skills
    assert [(case.run_key, case.finding) for case in pack.failures] == [
        ("e1/order/s1", "First."),
        ("e1/order/s2", "Second."),
    ]


async def test_3_13_13_a_judge_that_fails_once_leaves_the_others_alone() -> None:
    """Was: one failure aborted everything, and results were written only at the end."""
    rows = [
        msgspec.structs.replace(row, question_id=name)
        for name in ("q1", "q2", "q3")
        for row in (call(1, "view_node", "{}", '["v1_L1_000"]'), submit(2))
    ]
    ledger = Ledger(*rows)
    script: list[ChatAnswer | ChatFailed] = [answer(verdict()), failed(), answer(verdict())]
    written: list[int] = []

    async def chat(_: Request[object]) -> object:
        written.append(len(ledger.kept))
        return script.pop(0)

    actor = DiagnoserActor(SETTINGS, FakeAddress("llm", chat), FakeAddress("ledger", ledger))
    for name in ("q1", "q2", "q3"):
        await actor.on_diagnose(msgspec.structs.replace(REQUEST, question=question(name)))
    assert written == [0, 1, 2]  # each is stored before the next is asked for
    assert [row.cause for row in ledger.kept.values()] == ["defect", None, "defect"]


async def test_3_13_16_nodes_that_a_search_or_a_picture_showed_were_visited() -> None:
    """Was: visits were views only, so that whatever a search had shown counted as missed."""
    rows = (
        call(1, "search_similar", "{}", '["v1_L2_004"]', observation="v1_L2_004"),
        call(2, "search_subtitles", "{}", '["v1_L3_007"]', observation="v1_L3_007"),
        call(3, "observe_frame", "{}", '["v1_L3_008"]', observation="v1_L3_008"),
        submit(4),
    )
    named = ["v1_L2_004", "v1_L3_007", "v1_L3_008"]
    assert seen_nodes(read_steps(rows)) == set(named)
    found = await said_of(verdict(missed_nodes=named), *rows)
    assert (found.missed_nodes, found.error_type) == ((), "reasoning_failure")


async def test_3_13_17_the_gold_answer_does_not_leave_the_room() -> None:
    """Was: packs and prompts of editors held it, and nothing looked for leaks."""
    finding = "The correct answer should have been B, not C."
    rows = (call(1, "view_node", "{}", '["v1_L1_000"]'), submit(2))
    found = await said_of(verdict(finding=finding), *rows)
    assert found.finding == "The correct answer should have been [an option], not [an option]."
    right = submit(1).arguments.replace("C", "B")
    gathered = gather(
        [question()],
        [outcome(outcome="right", letter="B")],
        [msgspec.structs.replace(submit(1), arguments=right)],
        [],
        max_calls=8,
    )
    packs = case_packs(gathered, ("submit_answer",), max_chars=600)
    assert b'"B"' not in msgspec.json.encode(packs).replace(b"\\", b"")
    assert {
        field.name for field in msgspec.structs.fields(packs.skills[0].successes[0])
    }.isdisjoint({"answer", "gold", "correct", "letter"})


def test_calibration_cases_hold_what_a_run_stores() -> None:
    """The rows of a case are read back as its steps: one adapter for all (P0-2)."""
    for found in calibration_cases():
        assert read_steps(trace_rows(found)) == found.steps
