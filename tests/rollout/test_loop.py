"""Every way through the agent's turns, with a scripted model."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from actors.rollout.loop import run_loop
from actors.rollout.outcome import Broken, Ended, Lost
from protocol.llm import ChatAnswer, ChatMessage, ImagePart, TextPart, ToolCall
from protocol.settings import AgentSettings
from tests.rollout.script import (
    PROMPTS,
    QUESTION,
    SKILL,
    ScriptedChat,
    ScriptedTools,
    call,
    native,
    reply,
    settings,
    submit,
)

pytestmark = pytest.mark.anyio
LOOK = call("view_node", {"node_id": "-v1_L1_000"})
SEARCH = call("search_similar", {"query": "red car"})
LISTEN = call("search_subtitles", {"query": "drive"})
OBSERVE = call("observe_frame", {"node_ids": ["-v1_L3_000", "-v1_L3_001"], "question": "Colour?"})


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


async def test_a_reply_cut_at_the_token_limit_is_told_so() -> None:
    """And what was said too long does not fill the context a second time."""
    long = reply("I think that " * 1000, "length")
    chat = ScriptedChat([long, reply(submit("A"), "content_filter"), submit("B")])
    result = await _run(chat)
    assert isinstance(result, Ended)
    assert result.letter == "B"
    said = [str(message.content) for message in chat.asked[-1]]
    assert "cut off at the token limit; be shorter" in said[3]
    assert "cut off by a content filter" in said[5]
    assert len(said[2]) <= 1000 < len(result.steps[0].raw)
    assert [step.flags for step in result.steps] == [("cut",), (), ()]


async def test_the_last_step_asks_for_the_answer_only() -> None:
    """The endpoint is held to it where it can, and the outcome says that a budget had ended."""
    chat = ScriptedChat([LOOK, SEARCH, submit("B")])
    result = await _run(chat, agent=settings(max_steps=2))
    assert isinstance(result, Ended)
    assert (result.letter, result.stop, result.forced_by) == ("B", "submitted", "steps")
    assert [step.flags for step in result.steps] == [(), (), ("forced",)]
    schemas = [request.json_schema or "" for request in chat.requests]
    assert ["view_node" in schema for schema in schemas] == [True, True, False]
    assert "submit_answer" in schemas[-1]
    assert chat.last_said.startswith("Last step. Your steps are used up. Call submit_answer now")
    assert chat.last_said.endswith("\nhits for red car")


async def test_an_agent_that_looks_on_has_spent_its_budget() -> None:
    tools = ScriptedTools()
    result = await _run(ScriptedChat([LOOK, SEARCH, LISTEN]), tools, settings(max_steps=2))
    assert isinstance(result, Ended)
    assert (result.letter, result.stop, result.confidence) == (None, "budget", 0.5)
    assert (result.forced_by, len(tools.calls), len(result.steps)) == ("steps", 2, 3)
    assert result.steps[-1].observation == "Not run: only submit_answer was left."


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
    """What the answers took, not the wall clock: a replayed answer counts like the first."""
    chat = ScriptedChat([LOOK, SEARCH, submit("B")], takes_s=60.0)
    result = await _run(chat, agent=settings(max_steps=50, time_budget_s=100.0))
    assert isinstance(result, Ended)
    assert (result.letter, result.forced_by, len(result.steps)) == ("B", "time", 3)
    assert chat.last_said.startswith("Last step. Your time is used up.")
    looks = ScriptedChat([LOOK, SEARCH, LISTEN], takes_s=60.0)
    spent = await _run(looks, agent=settings(max_steps=50))
    assert isinstance(spent, Ended)
    assert (spent.stop, spent.forced_by) == ("budget", "time")


async def test_a_spent_token_budget_forces_the_answer() -> None:
    """Before it is overdrawn: the request for the answer has to be paid too."""
    script = [LOOK, SEARCH, LISTEN, submit("B")]
    replies = [reply(text, prompt_tokens=1000 * n) for n, text in enumerate(script, start=1)]
    chat = ScriptedChat(replies)
    result = await _run(chat, agent=settings(max_steps=50, token_budget=7000))
    assert isinstance(result, Ended)
    assert (result.letter, result.forced_by) == ("B", "tokens")
    assert [step.flags for step in result.steps] == [(), (), (), ("forced",)]
    assert chat.last_said.startswith("Last step. Your tokens are used up.")


async def test_budgets_are_shown() -> None:
    """All of them at first, then the step; tokens and time, in tenths, once half is gone."""
    agent = settings(max_steps=9, token_budget=10_000, time_budget_s=100.0)
    answers: list[str | ChatAnswer] = [
        reply(LOOK, seconds=10.0, prompt_tokens=1000),
        reply(SEARCH, seconds=45.0, prompt_tokens=2000),
        reply(LISTEN, seconds=5.0, prompt_tokens=3000),
        submit("B"),
    ]
    chat = ScriptedChat(answers)
    await _run(chat, agent=agent)
    first = chat.asked[0][1].content
    assert isinstance(first, str)
    assert "Budget: 9 steps, 10000 tokens, 100 seconds of answering." in first
    told = [str(messages[-1].content).splitlines()[0] for messages in chat.asked[1:]]
    assert told == [
        "Step 1 of 9.",
        "Step 2 of 9. Time left: 50 %.",
        "Step 3 of 9. Tokens left: 40 %. Time left: 40 %.",
    ]


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


# -- calls that were made before ---------------------------------------------------------


async def test_a_call_that_was_made_before_is_answered_from_memory() -> None:
    """Seen with a small model: the same search four times. The tree is not asked again."""
    again = call("search_similar", {"query": " RED  car ", "k": 5})
    tools = ScriptedTools()
    chat = ScriptedChat(["hm", SEARCH, LOOK, again, again, submit("B")])
    result = await _run(chat, tools, settings(max_steps=8))
    assert isinstance(result, Ended)
    assert tools.calls == [("search", "red car", 5), ("view", "-v1_L1_000")]
    assert [step.flags for step in result.steps] == [
        (),
        (),
        (),
        ("repeated",),
        ("repeated",),
        (),
    ]
    last = result.steps[4]
    assert (last.observation, last.node_ids) == ("hits for red car", ("-v1_L1_000",))
    assert last.notice == (
        "Step 4 of 8. You made this very call in step 1, and it brings nothing new. "
        "Do something else, or answer."  # what it showed was opened in step 2
    )
    assert chat.last_said == f"{last.notice}\n{last.observation}"


async def test_an_agent_that_is_stuck_is_not_offered_the_tool_for_once() -> None:
    """Seen with the same model: eight times the same search, whatever it was told."""
    chat = ScriptedChat([SEARCH, SEARCH, SEARCH, LOOK, SEARCH, submit("B")])
    result = await _run(chat, agent=settings(max_steps=9))
    assert isinstance(result, Ended)
    offered = ["search_similar" in (request.json_schema or "") for request in chat.requests]
    assert offered == [True, True, True, False, True, True]
    assert "such as -v1_L1_000, or answer." in result.steps[1].notice
    assert "such as" not in result.steps[4].notice
    natives = ScriptedChat([native("search_similar", {"query": "x"})] * 4 + [submit("B")])
    await _run(natives, agent=settings(max_steps=9, tool_calls="native"))
    names = [[tool.name for tool in request.tools] for request in natives.requests]
    assert ["search_similar" in offered for offered in names] == [True, True, True, False, False]


async def test_another_range_or_number_is_another_call() -> None:
    tools = ScriptedTools()
    looks = [
        call("search_similar", {"query": "red car", "k": 2}),
        SEARCH,
        LISTEN,
        call("search_subtitles", {"query": "drive", "end_s": 3}),
    ]
    result = await _run(ScriptedChat([*looks, submit("B")]), tools, settings(max_steps=8))
    assert isinstance(result, Ended)
    assert len(tools.calls) == 4
    assert not any(step.flags for step in result.steps)


async def test_wrong_calls_are_flagged_and_their_repetition_too() -> None:
    unknown = call("view_node", {"node_id": "?"})
    script = [call("fly", {}), call("fly", {}), unknown, unknown, submit("A")]
    result = await _run(ScriptedChat(script), agent=settings(max_steps=8))
    assert isinstance(result, Ended)
    assert [set(step.flags) for step in result.steps] == [
        {"bad_call"},
        {"bad_call", "repeated"},
        {"refused"},
        {"refused", "repeated"},
        set(),
    ]


# -- room ---------------------------------------------------------------------------------


def _searches(count: int) -> list[str]:
    return [call("search_similar", {"query": f"word{n}"}) for n in range(1, count + 1)]


def _shown(messages: tuple[ChatMessage, ...], what: str) -> list[str]:
    """Which searches' hits still stand in the conversation, or their stubs."""
    texts = [str(message.content) for message in messages if message.role == "user"]
    return [f"word{n}" for n in range(1, 9) for text in texts if what.format(f"word{n}") in text]


async def test_the_oldest_observations_make_room() -> None:
    """A line takes their place; the newest stays; the steps are counted and kept whole."""
    tools = ScriptedTools(long=2000)  # 500 tokens each
    replies = [reply(text, prompt_tokens=0) for text in _searches(4)]
    chat = ScriptedChat([*replies, submit("B")])
    result = await _run(chat, tools, settings(max_steps=8, max_prompt_tokens=1500))
    assert isinstance(result, Ended)
    last = chat.asked[-1]
    assert _shown(last, "hits for {}") == ["word3", "word4"]
    assert _shown(last, '{{"query": "{}"}} (left out') == ["word1", "word2"]
    assert str(last[3].content).startswith("Step 1: search_similar ")
    assert sum(step.dropped for step in result.steps) == 2
    assert result.forced_by == ""
    assert all(len(step.observation) > 2000 for step in result.steps[:4])


async def test_what_was_left_out_is_shown_again_when_it_is_asked_for() -> None:
    """Without a reproach, and without asking the tree."""
    tools = ScriptedTools(long=2000)
    replies = [reply(text, prompt_tokens=0) for text in (*_searches(4), *_searches(1))]
    chat = ScriptedChat([*replies, submit("B")])
    result = await _run(chat, tools, settings(max_steps=8, max_prompt_tokens=1500))
    assert isinstance(result, Ended)
    assert len(tools.calls) == 4
    assert "word1" in _shown(chat.asked[-1], "hits for {}")
    assert result.steps[4].flags == ()
    assert result.steps[4].notice == "Step 5 of 8."


async def test_the_endpoints_own_count_decides() -> None:
    """A quarter of the characters is a guess; what the endpoint counted is not."""
    tools = ScriptedTools(long=2000)
    replies = [reply(text, prompt_tokens=10) for text in _searches(4)]
    chat = ScriptedChat([*replies, submit("B")])
    await _run(chat, tools, settings(max_steps=8, max_prompt_tokens=1500))
    assert len(_shown(chat.asked[-1], "hits for {}")) == 4
    counted = zip(_searches(3), (500, 1400, 1400), strict=True)
    heavy = [reply(text, prompt_tokens=tokens) for text, tokens in counted]
    chat = ScriptedChat([*heavy, submit("B")])
    await _run(chat, tools, settings(max_steps=8, max_prompt_tokens=1500))
    assert _shown(chat.asked[-1], "hits for {}") == ["word3"]


async def test_without_room_for_an_observation_the_answer_is_due() -> None:
    tools = ScriptedTools(long=8000)
    chat = ScriptedChat([SEARCH, submit("B")])
    result = await _run(chat, tools, settings(max_prompt_tokens=1500))
    assert isinstance(result, Ended)
    assert (result.letter, result.forced_by) == ("B", "context")
    assert chat.last_said.startswith("Last step. There is no room for another observation.")


async def test_a_prompt_that_is_too_long_for_the_endpoint_is_cut_once() -> None:
    """Then it is asked again, and from there on the smaller limit holds."""
    tools = ScriptedTools(long=2000)
    too_long = Lost("context", "maximum context length")
    replies = [reply(text, prompt_tokens=0) for text in _searches(4)]
    chat = ScriptedChat([*replies[:3], too_long, replies[3], submit("B")])
    result = await _run(chat, tools, settings(max_steps=8))
    assert isinstance(result, Ended)
    assert result.letter == "B"
    assert _shown(chat.asked[3], "hits for {}") == ["word1", "word2", "word3"]
    assert _shown(chat.asked[4], "hits for {}") == ["word3"]
    assert result.steps[3].dropped == 2
    assert len(_shown(chat.asked[5], "hits for {}")) == 2


async def test_a_prompt_that_stays_too_long_is_missing() -> None:
    too_long = Lost("context", "maximum context length")
    twice = await _run(ScriptedChat([SEARCH, too_long, too_long]), ScriptedTools(long=2000))
    assert twice == Broken("context", "maximum context length", twice.steps)
    opening = await _run(ScriptedChat([too_long]))
    assert isinstance(opening, Broken)
    assert opening.kind == "context"


# -- native calls -------------------------------------------------------------------------


async def test_native_calls_go_back_and_forth_as_such() -> None:
    agent = settings(tool_calls="native", max_steps=8)
    chat = ScriptedChat(
        [
            native("view_node", {"node_id": "-v1_L1_000"}, "I open it.", "c1"),
            native("submit_answer", {"answer": "B", "confidence": 0.9}, "", "c2"),
        ]
    )
    result = await _run(chat, agent=agent)
    assert isinstance(result, Ended)
    assert (result.letter, result.confidence) == ("B", 0.9)
    first = chat.requests[0]
    assert first.json_schema is None
    assert [tool.name for tool in first.tools][-1] == "submit_answer"
    said, told = chat.asked[1][2:]
    assert (said.role, said.content, said.tool_calls[0].call_id) == (
        "assistant",
        "I open it.",
        "c1",
    )
    assert (told.role, told.call_id) == ("tool", "c1")
    assert told.content == "Step 1 of 8.\nA red car."
    look = result.steps[0]
    assert (look.thought, look.tool) == ("I open it.", "view_node")
    assert look.arguments == '{"node_id": "-v1_L1_000"}'
    assert "view_node" in look.raw


async def test_of_several_native_calls_the_first_is_run_and_all_are_answered() -> None:
    """The protocol wants an answer to every call; servers also leave ids out."""
    calls = (
        ToolCall(call_id="", name="search_similar", arguments='{"query": "a"}'),
        ToolCall(call_id="x", name="search_similar", arguments='{"query": "b"}'),
    )
    chat = ScriptedChat([reply("", "tool_calls", calls=calls), submit("B")])
    tools = ScriptedTools()
    result = await _run(chat, tools, settings(tool_calls="native"))
    assert isinstance(result, Ended)
    assert tools.calls == [("search", "a", 5)]
    said, *answers = chat.asked[1][2:]
    ids = [made.call_id for made in said.tool_calls]
    assert ids == ["call_1_0", "x"]
    assert [answer.call_id for answer in answers] == ids
    assert str(answers[1].content).startswith("Not run:")


async def test_json_in_the_text_is_understood_where_native_calls_were_offered() -> None:
    """Servers whose template does not know the model's form leave the call in the text."""
    written = '<tool_call>{"name": "view_node", "arguments": {"node_id": "-v1_L1_000"}}</tool_call>'
    chat = ScriptedChat([reply(written), "I would say B.", submit("B")])
    result = await _run(chat, agent=settings(tool_calls="native"))
    assert isinstance(result, Ended)
    assert [step.tool for step in result.steps] == ["view_node", None, "submit_answer"]
    assert [message.role for message in chat.asked[1][2:]] == ["assistant", "user"]
    assert "no tool was called" in chat.last_said
    assert "JSON object:" not in chat.last_said


async def test_the_last_native_call_can_only_be_an_answer() -> None:
    chat = ScriptedChat([native("view_node", {"node_id": "-v1_L1_000"})] * 2)
    result = await _run(chat, agent=settings(tool_calls="native", max_steps=1))
    assert isinstance(result, Ended)
    assert (result.stop, result.forced_by) == ("budget", "steps")
    assert [tool.name for tool in chat.requests[1].tools] == ["submit_answer"]


async def test_what_a_thinking_model_thought_is_kept_where_it_says_nothing() -> None:
    silent = call("view_node", {"node_id": "-v1_L1_000"}, thought="")
    chat = ScriptedChat([reply(silent, reasoning="The scene may show it."), submit("B")])
    result = await _run(chat)
    assert isinstance(result, Ended)
    assert result.steps[0].thought == "The scene may show it."
    assert result.steps[1].thought == "thinking"


# -- pictures -----------------------------------------------------------------------------


def _pictures(message: ChatMessage) -> list[str]:
    parts = message.content
    return [part.url for part in parts if isinstance(part, ImagePart)]


@pytest.mark.parametrize("calls", ["json", "native"])
async def test_pictures_go_to_the_agent_in_the_next_message(calls: str) -> None:
    """Each behind its id and time; with native calls behind the tool's answer, which is text."""
    tools = ScriptedTools(pictures="shown")
    ids = ("-v1_L3_000", "-v1_L3_001")
    ask: str | ChatAnswer = OBSERVE
    if calls == "native":
        ask = native("observe_frame", {"node_ids": list(ids), "question": "Colour?"})
    chat = ScriptedChat([ask, submit("B")])
    result = await _run(chat, tools, settings(vision="inline", tool_calls=calls))
    assert isinstance(result, Ended)
    assert tools.calls == [("observe", ids, "Colour?")]
    shown = chat.asked[1][-1]
    assert shown.role == "user"
    assert _pictures(shown) == ["data:image/jpeg;base64,0", "data:image/jpeg;base64,1"]
    texts = [part.text for part in shown.content if isinstance(part, TextPart)]
    assert texts[1:] == ["-v1_L3_000, at 0 s:", "-v1_L3_001, at 1 s:"]
    step = result.steps[0]
    assert (step.observation, step.node_ids) == ("2 key frames", ids)
    if calls == "native":
        assert str(chat.asked[1][-2].content) == "Step 1 of 4.\n2 key frames"


async def test_pictures_are_sent_once_and_again_only_after_they_had_to_go() -> None:
    tools = ScriptedTools(pictures="shown", long=2000)
    other = call("observe_frame", {"node_ids": ["-v1_L3_000", "-v1_L3_001"], "question": "Size?"})
    chat = ScriptedChat([OBSERVE, other, *_searches(3), OBSERVE, submit("B")])
    agent = settings(vision="inline", max_steps=9, max_prompt_tokens=3000)
    result = await _run(chat, tools, agent)
    assert isinstance(result, Ended)
    assert len([made for made in tools.calls if made[0] == "observe"]) == 1
    sent = [sum(len(_pictures(m)) for m in messages) for messages in chat.asked]
    assert sent == [0, 2, 2, 2, 2, 2, 2]
    assert [step.flags for step in result.steps][1] == ("repeated",)


async def test_pictures_count_as_tokens() -> None:
    """Their characters are no measure: half a megabyte of base64 is a thousand tokens."""
    tools = ScriptedTools(pictures="shown")
    chat = ScriptedChat([reply(OBSERVE, prompt_tokens=100), submit("B")])
    result = await _run(chat, tools, settings(vision="inline", max_prompt_tokens=2000))
    assert isinstance(result, Ended)
    assert result.forced_by == "context"


async def test_described_pictures_come_as_text_and_cost_what_they_cost() -> None:
    """The tokens and seconds of the model that looked are this step's too."""
    tools = ScriptedTools(pictures="described")
    chat = ScriptedChat([OBSERVE, OBSERVE, submit("B")], takes_s=2.0)
    agent = settings(vision="describe", max_steps=8, token_budget=1400, time_budget_s=1000.0)
    result = await _run(chat, tools, agent)
    assert isinstance(result, Ended)
    look = result.steps[0]
    assert look.observation == "A car, red."
    assert (look.prompt_tokens, look.completion_tokens, look.seconds) == (1100, 60, 32.0)
    assert result.forced_by == "tokens"
    assert len(tools.calls) == 1


async def test_a_question_about_pictures_that_is_not_asked_is_the_question_itself() -> None:
    tools = ScriptedTools(pictures="described")
    asks = call("observe_frame", {"node_ids": "-v1_L2_000"})
    await _run(ScriptedChat([asks, submit("B")]), tools, settings(vision="describe"))
    assert tools.calls == [("observe", ("-v1_L2_000",), QUESTION.question)]


async def test_a_video_without_pictures_says_so() -> None:
    chat = ScriptedChat([OBSERVE, submit("B")])
    result = await _run(chat, agent=settings(vision="inline"))
    assert isinstance(result, Ended)
    assert result.steps[0].flags == ("refused",)
    assert "no pictures" in chat.last_said


# -- choosing a skill ---------------------------------------------------------------------


async def test_with_manual_routing_a_skill_is_read_by_its_name() -> None:
    agent = settings(skill_routing="manual", max_steps=8)
    read = call("read_skill", {"name": "object-recognition"})
    chat = ScriptedChat([call("read_skill", {"name": "juggling"}), read, submit("B")])
    result = await _run(chat, agent=agent)
    assert isinstance(result, Ended)
    unknown, known, _ = result.steps
    assert unknown.flags == ("refused",)
    assert unknown.observation.endswith("There are: object-recognition.")
    assert (known.flags, known.node_ids) == ((), ())
    assert known.observation == "# Objects\n\n- Look twice.\n"
    assert '"object-recognition"' in (chat.requests[0].json_schema or "")
