"""Replies as actions: unreadable ones, bad calls, and good ones."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.rollout.action import (
    Action,
    BadCall,
    Look,
    Search,
    Submit,
    Subtitles,
    action_schema,
    confidence_of,
    read_action,
)
from prompts.reply import Unreadable
from tests.rollout.script import call, submit


def _read(text: str) -> Action:
    action = read_action(text)
    assert isinstance(action, Action)
    return action


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (call("view_node", {"node_id": "n1"}), Look("n1")),
        (call("search_similar", {"query": "red car"}), Search("red car", None)),
        (call("search_similar", {"query": "red car", "k": "3"}), Search("red car", 3)),
        (call("search_subtitles", {"query": "x"}), Subtitles("x", None, None)),
        (call("search_subtitles", {"start_s": 1, "end_s": 2.5}), Subtitles("", 1.0, 2.5)),
        (submit("B", evidence="n1"), Submit("B", 0.8)),
        (submit(["B"]), Submit(["B"], 0.8)),
        (call("submit_answer", "C"), Submit("C", 0.5)),
        (call("submit_answer", None), Submit(None, 0.5)),
        (call("submit_answer", {"choice": "C"}), Submit({"choice": "C"}, 0.5)),
        (f"Sure:\n```json\n{call('view_node', {'node_id': 'n1'})}\n```", Look("n1")),
    ],
)
def test_calls_are_typed(text: str, expected: object) -> None:
    assert _read(text).call == expected


def test_thought_and_arguments_are_kept_as_text() -> None:
    action = _read(json.dumps({"thought": None, "action": {"tool": "view_node", "args": [1]}}))
    assert (action.thought, action.tool, action.arguments) == ("null", "view_node", "[1]")


@pytest.mark.parametrize(
    ("tool", "args", "named"),
    [
        ("observe_frame", {}, "no tool 'observe_frame'"),
        ("view_node", {}, "node_id"),
        ("view_node", {"node_id": 3}, "node_id"),
        ("view_node", "n1", "Wrong arguments for view_node"),
        ("search_similar", {"query": "x", "k": "many"}, "$.k"),
        ("search_similar", {"query": "x", "k": 10**30}, "Wrong arguments"),
        ("search_subtitles", {"query": "x", "start_s": float("inf")}, "not finite"),
    ],
)
def test_bad_calls_are_explained(tool: str, args: object, named: str) -> None:
    action = _read(call(tool, args))
    assert isinstance(action.call, BadCall)
    assert named in action.call.problem


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I would look at the first scene.",
        "{}",
        '{"action": "view_node"}',
        '{"thought": "x", "action": {"args": {}}}',
        '{"action": {"tool": "view_node", "args": {"node_id": "x',
        '{"action": {"tool": "search_similar", "args": {"k": ' + "1" * 5000 + "}}}",
        "[" * 100_000 + "{" * 100_000,
    ],
)
def test_what_is_no_action_is_unreadable(text: str) -> None:
    assert isinstance(read_action(text), Unreadable)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.7, 0.7), (1, 1.0), (-3, 0.0), (85, 1.0), ("0.4", 0.4), (None, 0.5), ("high", 0.5),
        (True, 0.5), ([0.9], 0.5), (float("nan"), 0.5), ("nan", 0.5), (float("inf"), 1.0),
        (10**400, 1.0), (-(10**400), 0.0),
    ],
)  # fmt: skip
def test_confidence_is_clamped_or_one_half(value: object, expected: float) -> None:
    assert confidence_of(value) == expected


@given(st.text(st.characters()) | st.text(st.sampled_from('{}[]":,acinotrgsul \\1')))
def test_any_text_gives_an_action_or_a_problem(text: str) -> None:
    result = read_action(text)
    if isinstance(result, Unreadable):
        result.problem.encode()


@pytest.mark.parametrize(
    "text",
    [
        '{"thought": "t", "action": {"tool": "submit_answer", "args": {"answer": "B"}}',
        '{"thought": "t", "action": {"tool": "submit_answer", "args": {"answer": "B"',
        '```json\n{"thought": "a } in text", "action": {"tool": "submit_answer", '
        '"args": {"answer": "B"}}\n```',
    ],
    ids=["one brace", "all braces", "fenced"],
)
def test_closing_braces_may_be_missing(text: str) -> None:
    """Seen with small models: the reply ends by itself, one brace early."""
    action = read_action(text)
    assert isinstance(action, Action)
    assert action.call == Submit("B", 0.5)


@pytest.mark.parametrize(
    "text",
    [
        '{"thought": "cut in the middle of a str',
        '{"thought": {"a": {"b": {"c": {"d": {"e": 1',
        "no object at all",
    ],
)
def test_a_reply_that_was_cut_is_not_completed(text: str) -> None:
    """Only closers are added, never content."""
    assert isinstance(read_action(text), Unreadable)


def test_the_schema_is_what_the_reader_reads() -> None:
    """An endpoint held to the schema gives replies that can be read, for every tool."""
    schema = json.loads(action_schema())
    values = {"string": "B", "number": 0.5}
    tools = []
    for branch in schema["properties"]["action"]["anyOf"]:
        (tool,) = branch["properties"]["tool"]["enum"]
        fields = branch["properties"]["args"]["properties"]
        args = {
            name: values[field["type"]] if isinstance(field["type"], str) else None
            for name, field in fields.items()
        }
        reply = {"thought": "", "action": {"tool": tool, "args": args}}
        action = read_action(json.dumps(reply))
        assert isinstance(action, Action)
        assert not isinstance(action.call, BadCall)
        tools.append(tool)
    assert tools == ["view_node", "search_similar", "search_subtitles", "submit_answer"]


def test_reasons_are_written_before_the_decision() -> None:
    """Seen with a real server: properties come out in the schema's order, sorted or not."""
    schema = json.loads(action_schema())
    assert list(schema["properties"]) == ["thought", "action"]
    submit = schema["properties"]["action"]["anyOf"][-1]["properties"]
    assert list(submit) == ["tool", "args"]
    assert list(submit["args"]["properties"])[:2] == ["evidence", "reasoning"]
