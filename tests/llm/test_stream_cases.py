"""Every reported way in which a chat stream breaks, over real sockets (rows P1-2, P1-3)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from protocol.llm import ChatAnswer, ChatFailed
from tests.llm.server import Connection, Step, play, serving
from tests.llm.support import House, asked, endpoint, settings


class Case(msgspec.Struct, frozen=True):
    """A scripted response and what must come of it."""

    id: str
    steps: list[Step]
    expect: str


CASES = msgspec.json.decode(
    (Path(__file__).parent / "cases" / "streams.json").read_bytes(), type=list[Case]
)
# names of the corpus for which the protocol has one kind with others
SAME_KIND = {"bad_tool_json": "truncated", "bad_body": "server_error"}


@pytest.mark.anyio
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_case(case: Case) -> None:
    """One try gives exactly the expected answer, or the expected kind of failure."""

    async def handler(connection: Connection) -> None:
        await play(connection, case.steps)

    async with serving(handler) as server:
        wanted = settings(
            endpoint(server.base_url), attempts=1, first_token_s=0.6, idle_s=0.6, attempt_s=3.0
        )
        async with House.open(wanted) as house:
            reply = await house.actor.chat(asked())
    want, _, value = case.expect.partition(":")
    if want == "ok":
        assert isinstance(reply, ChatAnswer)
        assert reply.text == value
        assert len(house.entries) == 1
        assert [row.outcome for row in house.rows] == ["ok"]
    else:
        assert isinstance(reply, ChatFailed)
        assert (reply.kind, reply.fatal) == (SAME_KIND.get(value, value), want == "fatal")
        assert not house.entries
        assert [row.outcome for row in house.rows] == [reply.kind]


@pytest.mark.anyio
async def test_usage_is_cumulative_and_reasoning_kept_apart() -> None:
    """The last usage counts; both names of reasoning text are read."""
    by_id = {case.id: case for case in CASES}
    replies = []
    for name in ("usage_every_chunk", "reasoning_names", "finish_length", "tool_finish_stop"):
        steps = by_id[name].steps

        async def handler(connection: Connection, steps: list[Step] = steps) -> None:
            await play(connection, steps)

        async with serving(handler) as server, House.open(settings(endpoint(server.base_url))) as h:
            reply = await h.actor.chat(asked())
        assert isinstance(reply, ChatAnswer)
        replies.append(reply)
    assert (replies[0].usage.prompt_tokens, replies[0].usage.completion_tokens) == (3, 2)
    assert replies[1].reasoning == "thinking"
    assert replies[2].finish == "length"
    assert replies[3].finish == "tool_calls"
