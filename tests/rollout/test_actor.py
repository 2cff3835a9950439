"""The rollout actor against peers that answer, fail and crash."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from actors.rollout.actor import RolloutActor
from actors.runtime.errors import ActorCrashed, ActorDead, AskFailed
from actors.transcript import render_messages, render_transcript
from prompts.trajectory import read_steps
from protocol.base import Request
from protocol.ledger import Record, Recorded
from protocol.llm import Chat, ChatAnswer, ChatFailed
from protocol.rollout import Answered, Missed
from protocol.rows import OutcomeRow, TraceRow
from protocol.video import GetOverview, TreeText, TreeUnavailable
from tests.rollout.script import QUESTION, SKILL, call, reply, request, settings, submit
from tests.support.fakes import FakeAddress

pytestmark = pytest.mark.anyio
LOOK = call("view_node", {"node_id": "-v1_L1_000"}, thought="The first scene may show it.")


class House:
    """A rollout actor and its three peers; ``rows`` is what the ledger took, per ask."""

    def __init__(
        self,
        script: Sequence[str | ChatAnswer | ChatFailed | AskFailed],
        tree: TreeText | TreeUnavailable | AskFailed | None = None,
        ledger_fails: Sequence[Exception | None] = (),
    ) -> None:
        self.rows: list[tuple[object, ...]] = []
        self._script = iter(script)
        self._tree = tree or TreeText(text="- -v1_L1_000 | L1", node_ids=("-v1_L1_000",))
        self._ledger_fails = iter(ledger_fails)
        self.llm = FakeAddress("llm", self._chat)
        self.video = FakeAddress("video", self._look)
        self.ledger = FakeAddress("ledger", self._record)
        self.actor = RolloutActor(settings(), self.llm, self.video, self.ledger)

    async def run(self) -> Answered | Missed:
        return await self.actor.rollout(request())

    @property
    def outcome(self) -> OutcomeRow:
        row = self.rows[-1][0]
        assert isinstance(row, OutcomeRow)
        return row

    async def _chat(self, _: Request[object]) -> object:
        item = next(self._script)
        if isinstance(item, AskFailed):
            raise item
        return reply(item) if isinstance(item, str) else item

    async def _look(self, _: Request[object]) -> object:
        if isinstance(self._tree, AskFailed):
            raise self._tree
        return self._tree

    async def _record(self, asked: Request[object]) -> object:
        assert isinstance(asked, Record)
        failure = next(self._ledger_fails, None)
        if failure is not None:
            raise failure
        self.rows.append(asked.rows)
        return Recorded(rows=len(asked.rows))


async def test_P1_1_every_chat_of_a_rollout_carries_its_salt() -> None:
    """P1-1: an answer is always sampled under the salt of the request."""
    house = House([LOOK, "mumble", submit("B")])
    await house.run()
    assert len(house.llm.requests) == 3
    for asked in house.llm.requests:
        assert isinstance(asked, Chat)
        assert (asked.role, asked.cache_salt) == ("search", "seed1/e1")


async def test_P0_2_outcome_and_steps_are_stored_together_before_the_reply() -> None:
    """P0-2: one transaction holds the outcome and every step."""
    house = House([LOOK, submit("B")])
    answered = await house.run()
    assert answered == Answered(
        question_id=QUESTION.question_id,
        right=True,
        letter="B",
        submitted="B",
        confidence=0.8,
        stop="submitted",
        n_steps=2,
    )
    assert len(house.ledger.requests) == 1
    outcome, *traces = house.rows[0]
    assert isinstance(outcome, OutcomeRow)
    assert (outcome.outcome, outcome.letter, outcome.n_steps) == ("right", "B", 2)
    assert (outcome.prompt_tokens, outcome.completion_tokens) == (200, 20)
    assert (outcome.skill_hash, outcome.prompts_version) == (SKILL.hash, "v1")
    assert (outcome.salt, outcome.missing_kind) == ("seed1/e1", None)
    assert [trace.step for trace in traces if isinstance(trace, TraceRow)] == [1, 2]
    first = traces[0]
    assert isinstance(first, TraceRow)
    assert first.thought == "The first scene may show it."
    assert (first.tool, first.node_ids) == ("view_node", '["-v1_L1_000"]')


async def test_a_wrong_letter_and_no_letter_are_wrong_not_missing() -> None:
    wrong = House([submit("C")])
    assert isinstance(await wrong.run(), Answered)
    assert (wrong.outcome.outcome, wrong.outcome.letter) == ("wrong", "C")
    silent = House(["x", "x", "x"])
    reply_ = await silent.run()
    assert isinstance(reply_, Answered)
    assert (reply_.right, reply_.letter, reply_.stop) == (False, None, "parse_error")
    assert (silent.outcome.outcome, silent.outcome.letter) == ("wrong", None)


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (ChatFailed(kind="timeout", fatal=False, detail="slow"), "timeout"),
        (ChatFailed(kind="breaker_open", fatal=False, detail="open"), "breaker_open"),
        (ChatFailed(kind="auth", fatal=True, detail="key"), "auth"),
        (ChatFailed(kind="bad_request", fatal=True, detail="400"), "bad_request"),
        (ActorCrashed("llm", "bug"), "crash"),
        (ActorDead("llm", "stopped"), "crash"),
    ],
)
async def test_a_failed_chat_makes_the_question_missing(
    failure: ChatFailed | AskFailed, kind: str
) -> None:
    house = House([LOOK, failure])
    missed = await house.run()
    assert isinstance(missed, Missed)
    assert (missed.question_id, missed.kind) == (QUESTION.question_id, kind)
    assert (house.outcome.outcome, house.outcome.missing_kind) == ("missing", kind)
    assert len(house.rows[0]) == 2  # the whole step before the failure is kept


@pytest.mark.parametrize(
    ("tree", "kind"),
    [(TreeUnavailable(detail="no file"), "tree"), (ActorCrashed("video", "bug"), "crash")],
)
async def test_a_tree_that_fails_makes_the_question_missing(
    tree: TreeUnavailable | AskFailed, kind: str
) -> None:
    house = House([], tree=tree)
    missed = await house.run()
    assert isinstance(missed, Missed)
    assert missed.kind == kind
    assert house.outcome.missing_kind == kind
    assert isinstance(house.video.requests[0], GetOverview)


@pytest.mark.parametrize("error", [ActorCrashed("ledger", "disk full"), UnicodeError("odd text")])
async def test_P0_4_a_storage_failure_is_this_questions_alone(error: Exception) -> None:
    """P0-4: it comes back as Missed, and a missing row is written if one can be."""
    house = House([submit("B")], ledger_fails=[error])
    missed = await house.run()
    assert isinstance(missed, Missed)
    assert missed.kind == "storage"
    assert len(house.rows) == 1
    assert (house.outcome.outcome, house.outcome.missing_kind) == ("missing", "storage")
    assert house.outcome.n_steps == 0


async def test_P0_4_a_dead_ledger_still_gives_a_reply() -> None:
    """P0-4: not even the missing row can be written; the asker is told so."""
    down = ActorDead("ledger", "stopped")
    house = House([submit("B")], ledger_fails=[down, down])
    missed = await house.run()
    assert isinstance(missed, Missed)
    assert missed.kind == "storage"
    assert "nor could the missing row" in missed.detail


@pytest.mark.parametrize(
    "answer", [["B"], {"answer": "B"}, 7, 0.5, True, None, "\ud800B", "B\0", [[]], {"x": 10**400}]
)
async def test_P0_4_any_submitted_value_is_stored_as_text(answer: object) -> None:
    """P0-4: rows hold only what SQLite can hold, whatever the agent submitted."""
    house = House([submit(answer)] * 3)  # unreadable, refused or taken: all end by the third
    assert isinstance(await house.run(), Answered)
    connection = sqlite3.connect(":memory:")
    for row in house.rows[0]:
        assert isinstance(row, OutcomeRow | TraceRow)
        values = [getattr(row, name) for name in row.__struct_fields__]
        connection.execute("DROP TABLE IF EXISTS t")
        connection.execute(f"CREATE TABLE t ({', '.join(row.__struct_fields__)})")
        connection.execute(f"INSERT INTO t VALUES ({', '.join('?' * len(values))})", values)
    connection.close()


async def test_a_bug_is_not_dressed_up_as_missing() -> None:
    house = House([submit("B")], ledger_fails=[RuntimeError("a bug")])
    with pytest.raises(RuntimeError):
        await house.run()
    assert house.rows == []


async def test_what_went_oddly_is_counted_in_the_outcome() -> None:
    """Wrong and refused calls, repeated ones, unreadable replies, and what forced the answer."""
    script = [LOOK, LOOK, "hm", call("fly", {}), call("search_similar", {"query": 1}), submit("B")]
    house = House(script)
    answered = await house.run()
    assert isinstance(answered, Answered)
    assert answered.forced_by == "steps"
    row = house.outcome
    assert (row.bad_calls, row.repeated, row.unreadable, row.dropped) == (2, 1, 1, 0)
    assert (row.outcome, row.stop, row.forced_by) == ("right", "submitted", "steps")
    flags = [trace.flags for trace in house.rows[0] if isinstance(trace, TraceRow)]
    assert flags == ["[]", '["repeated"]', "[]", '["bad_call"]', '["bad_call"]', '["forced"]']


async def test_a_prompt_that_was_too_long_is_asked_again_shorter() -> None:
    """Through the client's own word for it; the steps say what was left out."""
    tree = TreeText(text="A red car. " * 300, node_ids=("-v1_L1_000",))
    too_long = ChatFailed(kind="context", fatal=True, detail="HTTP 400: maximum context length")
    house = House([LOOK, too_long, submit("B")], tree=tree)
    answered = await house.run()
    assert isinstance(answered, Answered)
    assert answered.right
    assert house.outcome.dropped == 1
    last = house.llm.requests[-1]
    assert isinstance(last, Chat)
    assert "left out here to save room" in str(last.messages[-1].content)


async def test_a_whole_rollout_as_a_readable_transcript() -> None:
    house = House([LOOK, call("search_similar", {"query": "red car"}), "hm", submit("B)")])
    assert isinstance(await house.run(), Answered)
    last = house.llm.requests[-1]
    assert isinstance(last, Chat)
    traces = [row for row in house.rows[0] if isinstance(row, TraceRow)]
    story = render_transcript(QUESTION, house.outcome, read_steps(traces))
    folder = Path(__file__).parents[1] / "outputs"
    folder.mkdir(exist_ok=True)
    (folder / "rollout.md").write_text(
        f"{story}\n---\n\n# The last request\n\n{render_messages(last.messages)}\n",
        encoding="utf-8",
    )
    assert "SECRET" not in "".join(str(message.content) for message in last.messages)
    assert [trace.tool for trace in traces] == [
        "view_node",
        "search_similar",
        None,
        "submit_answer",
    ]
