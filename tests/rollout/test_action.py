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
    Observe,
    ReadSkill,
    Search,
    Submit,
    Subtitles,
    confidence_of,
    read_action,
    read_tool_call,
)
from actors.rollout.tools import TOOLS, offered_tools, reply_schema, tool_specs
from prompts.reply import Unreadable
from protocol.llm import ToolCall
from tests.rollout.script import call, settings, submit


def _read(text: str) -> Action:
    action = read_action(text, TOOLS)
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
        (call("observe_frame", {"node_ids": ["n1", "n2"]}), Observe(("n1", "n2"))),
        (
            call("observe_frame", {"node_ids": "n1", "question": " what? "}),
            Observe(("n1",), "what?"),
        ),
        (call("observe_frame", {"node_id": "n1", "question": None}), Observe(("n1",))),
        (call("read_skill", {"name": "counting"}), ReadSkill("counting")),
        (call("view_node", json.dumps({"node_id": "n1"})), Look("n1")),
        (call(" view_node", {"node_id": "n1"}), Look("n1")),
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
    assert (action.thought, action.tool, action.arguments) == ("", "view_node", "[1]")
    action = _read(json.dumps({"thought": ["a"], "action": {"tool": "view_node"}}))
    assert (action.thought, action.arguments) == ('["a"]', "null")


@pytest.mark.parametrize(
    ("tool", "args", "named"),
    [
        ("fly", {}, "no tool 'fly'"),
        ("observe_frame", {}, "node_ids"),
        ("observe_frame", {"node_ids": [["n1"]]}, "node_ids"),
        ("observe_frame", "n1", "Wrong arguments for observe_frame"),
        ("read_skill", {"name": ["x"]}, "name"),
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
    assert isinstance(read_action(text, TOOLS), Unreadable)


@pytest.mark.parametrize(
    ("text", "thought"),
    [
        ('{"tool": "view_node", "args": {"node_id": "n1"}}', ""),
        ('{"thought": "t", "tool": "view_node", "args": {"node_id": "n1"}}', "t"),
        ('<tool_call>{"name": "view_node", "arguments": {"node_id": "n1"}}</tool_call>', ""),
        ('{"name": "view_node", "arguments": "{\\"node_id\\": \\"n1\\"}"}', ""),
    ],
    ids=["bare", "flat", "tool call", "as text"],
)
def test_the_forms_that_models_fall_back_to_are_understood(text: str, thought: str) -> None:
    action = _read(text)
    assert (action.thought, action.call) == (thought, Look("n1"))


def test_an_action_quoted_in_a_broken_reply_is_not_taken() -> None:
    """The smaller object never stands in for the larger one that is damaged."""
    inner = '{"tool": "view_node", "args": {"node_id": "n1"}}'
    cut = f'{{"thought": "x", "action": {inner}, "and then": "cut off in the mid'
    assert isinstance(read_action(cut, TOOLS), Unreadable)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"node_id": "n1"}', Look("n1")),
        ('"{\\"node_id\\": \\"n1\\"}"', Look("n1")),
    ],
)
def test_a_native_call_is_typed(arguments: str, expected: object) -> None:
    made = ToolCall(call_id="c", name="view_node", arguments=arguments)
    assert read_tool_call("t", made, TOOLS).call == expected


@pytest.mark.parametrize("arguments", ["{}", "[]", "null", "1" * 5000, '{"node_id": "\\ud800"}'])
def test_a_native_call_never_raises(arguments: str) -> None:
    made = ToolCall(call_id="c", name="view_node", arguments=arguments)
    action = read_tool_call("t", made, TOOLS)
    assert isinstance(action.call, BadCall | Look)
    action.arguments.encode()


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
    result = read_action(text, TOOLS)
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
    action = read_action(text, TOOLS)
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
    assert isinstance(read_action(text, TOOLS), Unreadable)


def _example(field: dict[str, object]) -> object:
    """A value that a field's schema allows."""
    kind = field["type"]
    if "enum" in field:
        assert isinstance(field["enum"], list)
        return field["enum"][-1]
    if isinstance(kind, list):
        return None
    values: dict[object, object] = {"string": "x", "number": 0.5, "array": ["n1"]}
    return values[kind]


def test_the_schema_is_what_the_reader_reads() -> None:
    """An endpoint held to the schema gives replies that can be read, for every tool."""
    schema = json.loads(reply_schema(TOOLS, "ABCDE", ("counting",)))
    tools = []
    for branch in schema["properties"]["action"]["anyOf"]:
        (tool,) = branch["properties"]["tool"]["enum"]
        fields = branch["properties"]["args"]["properties"]
        args = {name: _example(field) for name, field in fields.items()}
        action = _read(json.dumps({"thought": "", "action": {"tool": tool, "args": args}}))
        assert not isinstance(action.call, BadCall)
        tools.append(tool)
        if tool == "submit_answer":
            assert action.call == Submit("E", 0.5)
        if tool == "read_skill":
            assert action.call == ReadSkill("counting")
    assert tuple(tools) == TOOLS


def test_the_specifications_are_what_the_reader_reads() -> None:
    """The same for native calls, where what is optional may be left out."""
    for spec in tool_specs(TOOLS, "ABCD"):
        parameters = json.loads(spec.parameters)
        args = {name: _example(parameters["properties"][name]) for name in parameters["required"]}
        made = ToolCall(call_id="c", name=spec.name, arguments=json.dumps(args))
        assert not isinstance(read_tool_call("", made, TOOLS).call, BadCall)
        assert spec.description


def test_only_what_is_on_is_offered() -> None:
    plain = offered_tools(settings())
    assert plain == ("view_node", "search_similar", "search_subtitles", "submit_answer")
    assert offered_tools(settings(vision="inline", skill_routing="manual")) == TOOLS
    assert offered_tools(settings(vision="describe"))[3] == "observe_frame"
    action = read_action(call("observe_frame", {"node_ids": ["n1"]}), plain)
    assert isinstance(action, Action)
    assert isinstance(action.call, BadCall)
    assert "no tool 'observe_frame'" in action.call.problem


def test_reasons_are_written_before_the_decision() -> None:
    """Seen with a real server: properties come out in the schema's order, sorted or not."""
    schema = json.loads(reply_schema(TOOLS, "ABCD"))
    assert list(schema["properties"]) == ["thought", "action"]
    submitting = schema["properties"]["action"]["anyOf"][-1]["properties"]
    assert list(submitting) == ["tool", "args"]
    assert list(submitting["args"]["properties"]) == [
        "evidence",
        "reasoning",
        "answer",
        "confidence",
    ]


def test_the_last_reply_can_only_be_an_answer() -> None:
    """And only a letter that exists: a question may have two options or eight."""
    schema = json.loads(reply_schema(("submit_answer",), "AB"))
    action = schema["properties"]["action"]["properties"]
    assert action["tool"]["enum"] == ["submit_answer"]
    assert action["args"]["properties"]["answer"]["enum"] == ["A", "B"]
