"""Rollouts end to end: real actors, real HTTP, the simulator; transcripts to read, memory to hold.

``tests/outputs/rollouts_*.md`` shows what came of them.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from actors.ledger.reader import open_reader
from actors.transcript import render_transcript
from prompts.trajectory import read_steps
from protocol.dataset import Question
from protocol.rollout import Answered
from protocol.rows import OutcomeRow, TraceRow
from tests.system.answering import answer_all, answering, demo_questions

pytestmark = [pytest.mark.system, pytest.mark.anyio, pytest.mark.timeout(300)]

_GROWTH_MB = 3.0

OUTPUTS = Path(__file__).parents[1] / "outputs"
WAYS = {
    "json": (),
    "native": ("agent.tool_calls=native",),
    "manual": ("agent.skill_routing=manual",),
    "manual_native": ("agent.skill_routing=manual", "agent.tool_calls=native"),
    "cramped": ("agent.max_prompt_tokens=2400",),
}


def _one_per_class() -> list[Question]:
    first: dict[str, Question] = {}
    for question in demo_questions():
        first.setdefault(question.task_type, question)
    return list(first.values())


def _stored(database: Path) -> dict[str, tuple[OutcomeRow, list[TraceRow]]]:
    with open_reader(database) as reader:
        outcomes = {row.question_id: row for row in reader.rows(OutcomeRow)}
        traces = reader.rows(TraceRow)
    return {
        name: (row, [trace for trace in traces if trace.question_id == name])
        for name, row in outcomes.items()
    }


def _write(name: str, questions: Sequence[Question], database: Path) -> list[str]:
    """The transcripts as one file; returns the tools of every rollout's steps."""
    stored = _stored(database)
    texts, tools = [], []
    for question in questions:
        outcome, traces = stored[question.question_id]
        texts.append(render_transcript(question, outcome, read_steps(traces)))
        tools += [trace.tool or "unreadable" for trace in traces]
    OUTPUTS.mkdir(exist_ok=True)
    (OUTPUTS / f"rollouts_{name}.md").write_text("\n---\n\n".join(texts), encoding="utf-8")
    return tools


@pytest.mark.parametrize("way", WAYS)
async def test_a_question_of_every_class_is_answered(tmp_path: Path, way: str) -> None:
    """Either way of calling, either way of getting a skill, and with little room."""
    questions = _one_per_class()
    async with answering(tmp_path, WAYS[way]) as system:
        results = await answer_all(system, [(q, "outputs") for q in questions], width=8)
    assert all(isinstance(result, Answered) and result.letter for result in results)
    tools = _write(way, questions, tmp_path / "run.db")
    assert set(tools) >= {"search_similar", "submit_answer"}
    assert ("read_skill" in tools) == way.startswith("manual")
    tight = [
        row.dropped or row.forced_by == "context"
        for row, _ in _stored(tmp_path / "run.db").values()
    ]
    assert any(tight) == (way == "cramped")


@pytest.fixture
def traced() -> Iterator[Callable[[], float]]:
    """What Python's objects take, in MB, since the test began."""

    def held() -> float:
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / 1e6

    tracemalloc.start()
    yield held
    tracemalloc.stop()


async def test_six_hundred_rollouts_need_no_more_memory_than_two_hundred(
    tmp_path: Path, traced: Callable[[], float]
) -> None:
    """256 at a time: what a rollout needed is given back when it has ended.

    Held when 200 had ended and nothing was under way, and again after 600.
    """
    ordered = demo_questions()
    questions = [q for place in range(3) for q in ordered[place::3]]  # every video's tree at first
    asked = [(questions[n % len(questions)], f"round{n // len(questions)}") for n in range(600)]
    wide = ("agent.concurrency=256", "llm.concurrency=256", "llm.concurrency_start=64")
    async with answering(tmp_path, wide) as system:
        results = await answer_all(system, asked[:200], width=256)
        before = traced()
        results += await answer_all(system, asked[200:], width=256)
        after = traced()
    assert all(isinstance(result, Answered) for result in results)
    with open_reader(tmp_path / "run.db") as reader:
        assert len(reader.rows(OutcomeRow)) == 600
    assert after - before < _GROWTH_MB, (before, after)
