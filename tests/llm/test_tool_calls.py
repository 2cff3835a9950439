"""Tool calls out of their parts, however a server numbers them (clients.md A2.11)."""

from __future__ import annotations

import json
from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import given

from actors.llm.chunks import ToolDelta
from actors.llm.tool_calls import ToolCalls
from protocol.llm import ToolCall


def part(
    slot: int | None = None, call_id: str = "", name: str = "", arguments: str = ""
) -> ToolDelta:
    return ToolDelta(slot, call_id, name, arguments)


def call(call_id: str, name: str, arguments: str) -> ToolCall:
    return ToolCall(call_id=call_id, name=name, arguments=arguments)


TWO = (call("x", "look", '{"a": 1}'), call("y", "find", "{}"))


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(
            [
                part(0, "x", "look"),
                part(0, arguments='{"a"'),
                part(0, arguments=": 1}"),
                part(1, "y", "find"),
                part(1, arguments="{}"),
            ],
            id="openai",
        ),
        pytest.param(
            [
                part(0, "x", "look", '{"a"'),
                part(1, "y", "find", "{"),
                part(0, arguments=": 1}"),
                part(1, arguments="}"),
            ],
            id="interleaved",
        ),
        pytest.param(
            [part(0, "x", "look", '{"a": 1}'), part(0, "y", "find", "{}")],
            id="every number is 0 (ollama#7881)",
        ),
        pytest.param(
            [
                part(0, "x", "look", '{"a"'),
                part(0, arguments=": 1}"),
                part(0, "y", "find", "{"),
                part(0, arguments="}"),
            ],
            id="every number is 0, in parts",
        ),
        pytest.param(
            [part(None, "x", "look", '{"a": 1}'), part(None, "y", "find", "{}")],
            id="no numbers",
        ),
        pytest.param(
            [
                part(None, "x", "look", '{"a"'),
                part(arguments=": 1}"),
                part(None, "y", "find"),
                part(arguments="{}"),
            ],
            id="no numbers, later parts have no id either",
        ),
        pytest.param(
            [part(0, "x", "look", '{"a"'), part(0, "x", "look", ": 1}"), part(1, "y", "find")],
            id="id and name in every part",
        ),
    ],
)
def test_two_calls(parts: list[ToolDelta]) -> None:
    """No arguments at all are an empty object."""
    calls = ToolCalls()
    assert not calls
    for one in parts:
        calls.add(one)
    assert calls
    assert calls.whole() == TWO


def test_numbers_without_ids() -> None:
    """A number that was not seen before is another call."""
    calls = ToolCalls()
    for one in (
        part(0, name="look", arguments='{"a"'),
        part(1, name="find", arguments="{}"),
        part(0, arguments=": 1}"),
    ):
        calls.add(one)
    assert calls.whole() == (call("", "look", '{"a": 1}'), call("", "find", "{}"))


@pytest.mark.parametrize("arguments", ['{"a": ', "{'a': 1}", "look", '{"a": 1}}'])
def test_a_call_that_was_cut_is_none(arguments: str) -> None:
    """And with it the others: half of what the model wanted is not what it wanted."""
    calls = ToolCalls()
    calls.add(part(0, "x", "look", "{}"))
    calls.add(part(1, "y", "find", arguments))
    assert calls.whole() is None


@given(
    wanted=st.lists(
        st.dictionaries(st.text(max_size=3), st.integers(), max_size=3), min_size=1, max_size=4
    ),
    random=st.randoms(use_true_random=False),
    ids=st.booleans(),
)
def test_however_the_parts_are_cut_and_mixed(
    wanted: list[dict[str, int]], random: Random, ids: bool
) -> None:
    """As long as each part carries its number, the calls come out whole and in order."""
    texts = [json.dumps(arguments) for arguments in wanted]
    parts: list[list[ToolDelta]] = []
    for number, text in enumerate(texts):
        cut = random.randint(0, len(text))
        head = part(number, f"id{number}" if ids else "", f"f{number}", text[:cut])
        parts.append([head, part(number, arguments=text[cut:])])
    calls = ToolCalls()
    for head, _ in parts:
        calls.add(head)
    tails = [tail for _, tail in parts]
    random.shuffle(tails)
    for tail in tails:
        calls.add(tail)
    whole = calls.whole()
    assert whole is not None
    assert [one.arguments for one in whole] == texts
    assert [one.name for one in whole] == [f"f{number}" for number in range(len(texts))]
