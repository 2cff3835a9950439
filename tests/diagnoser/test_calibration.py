"""The calibration set, and what the bench says of judges whose errors are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import get_args

import msgspec
import pytest

from actors.diagnoser.actor import DiagnoserActor
from actors.diagnoser.metrics import gradable, mentioned_nodes, seen_nodes
from actors.diagnoser.rules import rule_lines
from actors.diagnoser.waterfall import ReasoningFailure
from actors.trainer.score import wilson
from actors.twin.chance import fraction, pick
from actors.twin.judge import judge_reply
from actors.twin.wire import Turn
from actors.twin.world import holds
from protocol.base import Request
from protocol.diagnoser import Cause, Diagnosis, ErrorType
from protocol.ledger import Record, Recorded, Select, Selected
from protocol.llm import Chat
from tests.bench.judge_calibration import Calibration, Judged, calibrate, main, report
from tests.diagnoser.cases.build import CalibrationCase, calibration_cases, trace_rows
from tests.diagnoser.make import SETTINGS, answer
from tests.support.fakes import FakeAddress
from tests.twin.conversations import demo

LLM = Callable[[CalibrationCase, Chat], str]


# -- the set ----------------------------------------------------------------------------


def test_the_set_covers_causes_and_kinds() -> None:
    """Several of each: at least 24 cases, every error type and every subtype."""
    cases = calibration_cases()
    assert len(cases) >= 24
    assert len({case.name for case in cases}) == len(cases)
    causes = Counter(case.planted.cause for case in cases)
    assert causes["defect"] >= 10
    assert causes["lapse"] >= 10
    kinds = Counter(case.planted.error_type for case in cases)
    assert set(kinds) == set(get_args(ErrorType))
    assert min(kinds.values()) >= 2
    subtypes = Counter(case.planted.subtype for case in cases if case.planted.subtype)
    assert set(subtypes) == set(get_args(ReasoningFailure))
    assert min(subtypes.values()) >= 4


@pytest.mark.parametrize("case", calibration_cases(), ids=lambda case: case.name)
def test_a_case_is_what_it_says(case: CalibrationCase) -> None:
    """A wrong letter, and a trajectory in which the planted kind can be seen."""
    letters = "ABCD"[: len(case.request.question.options)]
    assert case.request.letter is not None
    assert case.request.letter in letters
    assert case.request.letter != case.request.question.answer
    assert case.steps[-1].tool == "submit_answer"
    graded = [step for step in case.steps if gradable(step)]
    missed = mentioned_nodes(case.steps) - seen_nodes(case.steps)
    if case.planted.error_type == "no_search":
        assert len(case.steps) == 1
    elif case.planted.error_type == "search_failure":
        assert missed
    elif case.planted.error_type == "reasoning_failure":
        assert graded
    assert (case.planted.subtype is None) == (case.planted.error_type != "reasoning_failure")


def test_the_skills_of_the_cases_are_silent_or_say_what_they_should() -> None:
    """A lesson stands in the skill where it was ignored, and in no other; traps where they led."""
    for case in calibration_cases():
        variant = case.name.split("/")[1]
        task_type, text = case.request.skill.task_type, case.request.skill.text
        lessons = [lesson for lesson in demo().lessons_of(task_type) if holds(text, lesson.key)]
        traps = [trap for trap in demo().traps_of(task_type) if holds(text, trap.key)]
        assert bool(lessons) == (variant == "ignored"), case.name
        assert bool(traps) == (variant == "misled"), case.name


def test_the_set_is_the_same_every_time() -> None:
    """Built anew, it is equal: the demo's files are its only source."""
    first = calibration_cases()
    calibration_cases.cache_clear()
    assert calibration_cases() == first


# -- judges -----------------------------------------------------------------------------


def judging(llm: LLM) -> Callable[[CalibrationCase], Awaitable[Diagnosis]]:
    """The real diagnoser over the case's steps, with this judge behind it."""

    async def judge(case: CalibrationCase) -> Diagnosis:
        async def chat(request: Request[object]) -> object:
            assert isinstance(request, Chat)
            return answer(llm(case, request))

        async def ledger(request: Request[object]) -> object:
            if isinstance(request, Select):
                return Selected(rows=trace_rows(case))
            assert isinstance(request, Record)
            return Recorded(rows=1)

        settings = msgspec.structs.replace(SETTINGS, max_trace_chars=12_000)
        actor = DiagnoserActor(settings, FakeAddress("llm", chat), FakeAddress("ledger", ledger))
        found = await actor.on_diagnose(case.request)
        assert isinstance(found, Diagnosis)
        return found

    return judge


def twin(noise: float, world_seed: int) -> LLM:
    """The simulator's judge, in this process."""

    def say(_: CalibrationCase, request: Chat) -> str:
        turns = tuple(Turn(m.role, str(m.content)) for m in request.messages)
        return judge_reply(demo(), world_seed, noise, turns, None)

    return say


def oracle(noise: float, broken: float = 0.0) -> LLM:
    """A judge that knows what was planted; at these rates it names another cause, or nothing."""

    def say(case: CalibrationCase, request: Chat) -> str:
        planted = case.planted
        if fraction("broken", case.name) < broken:
            return "I cannot tell."
        others = [cause for cause in get_args(Cause) if cause != planted.cause]
        cause = planted.cause
        if fraction("noise", case.name) < noise:
            cause = pick(others, "other", case.name)
        return msgspec.json.encode(_truth(case, cause, request)).decode()

    return say


def _truth(case: CalibrationCase, cause: Cause, request: Chat) -> dict[str, object]:
    """The reply that leads to the planted error type, with this cause."""
    planted = case.planted
    listed = str(request.messages[0].content).rpartition("Calls to grade: ")[2].strip()
    steps = [] if listed == "none" else [int(number) for number in listed.split(", ")]
    poor = planted.error_type == "extraction_failure"
    missed = sorted(mentioned_nodes(case.steps) - seen_nodes(case.steps))
    rule = {"defect": "none", "lapse": rule_lines(case.request.skill.text)[0], "uncertain": "none"}
    return {
        "calls": [
            {"step": step, "kept": "most", "invented": "all" if poor else "nothing"}
            for step in steps
        ],
        "missed_nodes": missed if planted.error_type == "search_failure" else [],
        "evidence_sufficient": planted.error_type == "reasoning_failure",
        "reasoning_failure": planted.subtype,
        "rule": rule[cause],
        "followed": {"defect": "none", "lapse": "no", "uncertain": "unclear"}[cause],
        "cause": cause,
        "finding": "Said without the answer.",
    }


@pytest.mark.anyio
async def test_a_judge_that_knows_the_truth_is_right_throughout() -> None:
    """Prompt, reply, waterfall and table lose nothing: both tables have only their diagonals."""
    found = await calibrate(judging(oracle(0.0)), calibration_cases(), 4)
    n = len(found.judged)
    assert (found.right_causes, found.right_error_types) == (n, n)
    assert found.subtypes[0] == found.subtypes[1] > 0
    assert (found.count("degraded"), found.count("missing")) == (0, 0)


@pytest.mark.anyio
async def test_an_unreadable_judge_is_degraded_and_not_right() -> None:
    """Degraded counts as wrong, and is told apart from a wrong cause."""
    found = await calibrate(judging(oracle(0.0, broken=0.3)), calibration_cases(), 4)
    broken = sum(fraction("broken", case.name) < 0.3 for case in calibration_cases())
    assert found.count("degraded") == broken > 0
    assert found.right_causes == len(found.judged) - broken


@pytest.mark.anyio
@pytest.mark.parametrize("noise", [0.1, 0.3])
async def test_the_simulators_noise_is_recovered(noise: float) -> None:
    """What the simulator states lies in the interval of what is measured of it.

    The interval is wide (3.3 standard errors): every change of the prompt draws anew.
    """
    judged: list[Judged] = []
    for world_seed in range(8):
        found = await calibrate(judging(twin(noise, world_seed)), calibration_cases(), 4)
        judged += found.judged
    whole = Calibration(tuple(judged))
    n = len(whole.judged)
    low, high = wilson(n - whole.right_causes, n, z=3.3)
    assert low <= noise <= high
    assert high - low < 0.17
    assert whole.count("degraded") == 0


@pytest.mark.anyio
async def test_a_simulator_without_noise_names_every_planted_cause() -> None:
    """The set and the planted world agree, and only answers without a look are no_search."""
    found = await calibrate(judging(twin(0.0, 7)), calibration_cases(), 4)
    assert found.right_causes == len(found.judged)
    for item in found.judged:
        told = item.diagnosis.error_type == "no_search"
        assert told == (item.case.planted.error_type == "no_search")


# -- what is printed --------------------------------------------------------------------


def test_the_report_has_tables_shares_and_intervals() -> None:
    case = calibration_cases()[0]
    said = Diagnosis(
        question_id=case.request.question.question_id,
        error_type="mixed",
        subtype=None,
        cause="lapse",
        degraded=False,
        finding="Because.",
        rule="Look twice.",
    )
    dumb = msgspec.structs.replace(said, cause="uncertain", degraded=True)
    silent = msgspec.structs.replace(said, cause=None)
    true = msgspec.structs.replace(said, cause="defect", error_type="search_failure")
    found = Calibration(tuple(Judged(case, item) for item in (said, dumb, silent, true)))
    text = report(found, show=True)
    lines = text.splitlines()
    row = next(line for line in lines if line.startswith("defect"))
    assert row.split() == ["defect", "1", "1", ".", "1", "1"]
    assert any(line.split()[:3] == ["cause", "right", "1/4"] for line in lines)
    assert "25.0%  [4.6%, 69.9%]" in text
    assert any(line.split()[:2] == ["degraded", "1/4"] for line in lines)
    assert sum(line.startswith(case.name) for line in lines) == 3
    assert "judged lapse mixed; rule 'Look twice.'; Because." in text
    assert "Because." not in report(found)


@pytest.mark.parametrize(
    "argv",
    [
        ["--base-url", "http://127.0.0.1:1/v1"],
        ["--model", "m"],
        ["--base-url", "x", "--config", "y", "--model", "m"],
        ["--set", "llm.nonsense=1"],
    ],
)
def test_arguments_that_do_not_fit(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(argv)
    assert stopped.value.code == 2
    assert "judge_calibration: error: " in capsys.readouterr().err
