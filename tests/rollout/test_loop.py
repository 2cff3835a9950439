"""Every way through the agent's turns, with a scripted model."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from actors.rollout.loop import Broken, Ended, Lost, run_loop
from protocol.llm import ChatAnswer
from protocol.settings import AgentSettings
from tests.rollout.script import (
    PROMPTS,
    QUESTION,
    SKILL,
    ScriptedChat,
    ScriptedTools,
    call,
    reply,
    settings,
    submit,
)

pytestmark = pytest.mark.anyio
LOOK = call("view_node", {"node_id": "-v1_L1_000"})


async def _run(
    chat: ScriptedChat,
    tools: ScriptedTools | None = None,
    agent: AgentSettings | None = None,
) -> Ended | Broken:
    return await run_loop(
        QUESTION.public,
        PROMPTS,
        SKILL,
        chat=chat,
        tools=tools or ScriptedTools(),
        settings=agent or settings(),
    )


async def _ended(script: Sequence[str | ChatAnswer | Lost], agent: AgentSettings) -> Ended:
    result = await _run(ScriptedChat(script), agent=agent)
    assert isinstance(result, Ended)
    return result


async def test_look_search_listen_and_answer() -> None:
    tools = ScriptedTools()
    chat = ScriptedChat(
        [
            LOOK,
            call("search_similar", {"query": "red car"}),
            call("search_subtitles", {"query": "drive", "start_s": 3}),
            submit("B. A red car."),
        ]
    )
    result = await _run(chat, tools)
    assert isinstance(result, Ended)
    assert (result.letter, result.stop, result.confidence) == ("B", "submitted", 0.8)
    assert result.submitted == "B. A red car."
    assert tools.calls == [
        ("view", "-v1_L1_000"),
        ("search", "red car", 5),
        ("subtitles", "drive", 3.0, None),
    ]
    assert chat.last_said == "Step 3 of 4.\nsubtitles"
    assert [message.role for message in chat.asked[-1]] == ["system"] + [
        "user",
        "assistant",
    ] * 3 + ["user"]


async def test_P0_2_every_turn_is_a_step_with_all_that_diagnosis_needs() -> None:
    """P0-2: thought, call, observation, raw reply and node ids of every turn are kept."""
    chat = ScriptedChat(["mumble", LOOK, submit("B")], takes_s=2.0)
    result = await _run(chat)
    assert isinstance(result, Ended)
    unreadable, look, answer = result.steps
    assert (unreadable.index, unreadable.tool, unreadable.raw) == (1, None, "mumble")
    assert unreadable.observation.startswith("Your reply could not be read:")
    assert (look.index, look.thought, look.tool) == (2, "thinking", "view_node")
    assert look.arguments == '{"node_id": "-v1_L1_000"}'
    assert (look.observation, look.node_ids, look.raw) == ("A red car.", ("-v1_L1_000",), LOOK)
    assert (look.prompt_tokens, look.completion_tokens, look.seconds) == (100, 10, 2.0)
    assert (answer.index, answer.tool) == (3, "submit_answer")
    assert "B" in answer.observation


async def test_unreadable_replies_are_answered_then_end_the_rollout() -> None:
    chat = ScriptedChat(["no", LOOK, "no", "no", "no"])
    result = await _run(chat)
    assert isinstance(result, Ended)
    assert (result.letter, result.stop, len(result.steps)) == (None, "parse_error", 5)
    assert chat.last_said.startswith("Your reply could not be read:")


async def test_unreadable_replies_cost_no_step_but_bad_calls_do() -> None:
    chat = ScriptedChat(
        [
            "no",
            call("fly", {}),
            call("view_node", {}),
            call("view_node", {"node_id": "?"}),
            submit("A"),
        ]
    )
    result = await _run(chat, agent=settings(max_steps=8))
    assert isinstance(result, Ended)
    assert chat.last_said == "Step 3 of 8.\nThere is no such node."
    said = [step.observation for step in result.steps]
    assert "There is no tool 'fly'" in said[1]
    assert "Wrong arguments for view_node" in said[2]


async def test_a_reply_cut_at_the_token_limit_is_unreadable() -> None:
    chat = ScriptedChat([reply(submit("A"), "length"), submit("B")])
    result = await _run(chat)
    assert isinstance(result, Ended)
    assert result.letter == "B"
    assert "cut off at the token limit" in chat.last_said


async def test_the_last_step_asks_for_the_answer_only() -> None:
    chat = ScriptedChat([LOOK, LOOK, submit("B")])
    result = await _run(chat, agent=settings(max_steps=2))
    assert isinstance(result, Ended)
    assert (result.letter, result.stop) == ("B", "submitted")
    assert chat.last_said.startswith("Last step. ")
    assert "submit_answer" in chat.last_said
    assert "A red car." in chat.last_said


async def test_an_agent_that_looks_on_has_spent_its_budget() -> None:
    tools = ScriptedTools()
    result = await _run(ScriptedChat([LOOK, LOOK, LOOK]), tools, settings(max_steps=2))
    assert isinstance(result, Ended)
    assert (result.letter, result.stop, result.confidence) == (None, "budget", 0.5)
    assert len(tools.calls) == 2
    assert len(result.steps) == 3


async def test_an_answer_without_a_letter_is_told_once_then_taken() -> None:
    told = ScriptedChat([submit("A or B"), submit("c")])
    result = await _run(told)
    assert isinstance(result, Ended)
    assert (result.letter, result.stop) == ("C", "submitted")
    assert told.last_said.startswith("Step 1 of 4.\nYour answer has no valid letter")
    assert "A, B, C, D" in told.last_said
    stubborn = await _ended([submit(None), submit({"x": [1]})], settings())
    assert (stubborn.letter, stubborn.stop) == (None, "no_answer")
    assert stubborn.submitted == '{"x": [1]}'


async def test_a_bad_answer_on_the_last_step_is_told_once_too() -> None:
    chat = ScriptedChat([LOOK, submit("E"), submit("D")])
    result = await _run(chat, agent=settings(max_steps=1))
    assert isinstance(result, Ended)
    assert result.letter == "D"
    assert chat.last_said.startswith("Last step. ")


async def test_a_spent_time_budget_forces_the_answer() -> None:
    chat = ScriptedChat([LOOK, LOOK, submit("B")], takes_s=60.0)
    result = await _run(chat, agent=settings(max_steps=50, time_budget_s=100.0))
    assert isinstance(result, Ended)
    assert (result.letter, len(result.steps)) == ("B", 3)
    assert chat.last_said.startswith("Last step. ")
    looks = ScriptedChat([LOOK] * 3, takes_s=60.0)
    spent = await _run(looks, agent=settings(max_steps=50))
    assert isinstance(spent, Ended)
    assert spent.stop == "budget"


async def test_infrastructure_breaks_the_rollout_and_keeps_whole_steps() -> None:
    lost = Lost("timeout", "no answer")
    chat = await _run(ScriptedChat([LOOK, lost]))
    assert chat == Broken("timeout", "no answer", chat.steps)
    assert len(chat.steps) == 1
    tool = await _run(ScriptedChat([LOOK]), ScriptedTools(lost=Lost("tree", "damaged")))
    assert tool == Broken("tree", "damaged", ())
    start = await _run(ScriptedChat([]), ScriptedTools(overview_lost=Lost("tree", "missing")))
    assert start == Broken("tree", "missing", ())


async def test_what_cannot_be_encoded_never_reaches_a_peer() -> None:
    tools = ScriptedTools()
    odd = call("search_similar", {"query": "NULx"}).replace("NUL", "\\u0000")
    half = call("view_node", {"node_id": "HALF"}).replace("HALF", "\\ud800")
    chat = ScriptedChat([odd, half, "raw \ud800 \0 text", "", submit("B")], takes_s=0)
    result = await _run(chat, tools, settings(max_parse_failures=9))
    assert isinstance(result, Ended)
    assert tools.calls[0] == ("search", "\ufffdx", 5)
    for message in chat.asked[-1]:
        assert isinstance(message.content, str)
        assert message.content
        message.content.encode()
    for step in result.steps:
        "".join((step.thought, step.arguments, step.observation, step.raw)).encode()
