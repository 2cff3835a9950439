"""The simulated agent."""

from __future__ import annotations

import math
import re
from collections import Counter

import msgspec
import pytest

from actors.twin.agent import agent_reply
from actors.twin.catalog import Entry, NotPlanted
from actors.twin.chance import fraction
from actors.twin.layout import LayoutError
from actors.twin.wire import Turn
from prompts.reply import Decoded, decode_reply
from protocol.keys import slug
from tests.twin.conversations import (
    agent_turns,
    choosing_turns,
    demo,
    entries_of,
    observation,
    skill_of,
)


class Args(msgspec.Struct):
    """Arguments of any tool."""

    answer: str | None = None
    confidence: float | None = None
    node_id: str | None = None
    query: str | None = None
    name: str | None = None


class Action(msgspec.Struct):
    """A tool call."""

    tool: str
    args: Args


class Reply(msgspec.Struct):
    """The agent's reply."""

    thought: str
    action: Action


class Attempt(msgspec.Struct):
    """An attempt played to its end."""

    letter: str
    confidence: float
    tools: list[str]
    raws: list[str]
    unreadable: int


def play(
    entry: Entry,
    skill: str,
    seed: int | None,
    world_seed: int = 7,
    opening: tuple[Turn, ...] | None = None,
    role: str = "user",
) -> Attempt:
    """Act as the rollout does: observations after tools, a complaint after what cannot be read.

    opening: the first turns, where they are not those of an agent with its class's skill.
    role: whose message an observation is.
    """
    turns = list(opening or agent_turns(entry, skill))
    tools: list[str] = []
    raws: list[str] = []
    unreadable = 0
    for _ in range(8):
        raw = agent_reply(demo(), world_seed, tuple(turns), seed)
        raws.append(raw)
        turns.append(Turn("assistant", raw))
        read = decode_reply(raw, Reply)
        if not isinstance(read, Decoded):
            unreadable += 1
            turns.append(Turn("user", f"Your reply could not be read: {read.problem}"))
            continue
        action = read.value.action
        tools.append(action.tool)
        if action.tool == "submit_answer":
            assert action.args.answer is not None
            assert action.args.confidence is not None
            return Attempt(action.args.answer, action.args.confidence, tools, raws, unreadable)
        if action.tool == "read_skill":
            assert action.args.name is not None
            assert f"- {action.args.name}: " in turns[0].text
            own = action.args.name == slug(entry.row.task_type)
            seen = skill if own else "# Another strategy"
            turns.append(Turn(role, f"Step {len(tools)} of 8.\n{seen}"))
            continue
        if action.tool == "view_node":
            assert action.args.node_id is not None
            shown = "\n".join(turn.text for turn in turns if turn.role != "assistant")
            assert action.args.node_id in shown, "an id that was never shown"
        else:
            assert action.args.query is not None
            asked = entry.row.question.casefold()
            assert all(word in asked for word in action.args.query.casefold().split())
        seen = f"{entry.row.video_id}_L3_00{len(tools)} [3-9] something"
        turns.append(Turn(role, observation(len(tools), seen).text))
    raise AssertionError("no answer within eight turns")


def letter_of(attempt: Attempt) -> str:
    return attempt.letter.rstrip(".").upper()


@pytest.mark.parametrize("taught", [False, True], ids=["seed skill", "with the lessons"])
def test_accuracy_is_the_planted_one(taught: bool) -> None:
    """2,000 attempts come within four standard errors of the truth."""
    task_type = "Temporal Reasoning"
    skill = skill_of(task_type)
    if taught:
        skill += "".join(f"{lesson.text}\n" for lesson in demo().lessons_of(task_type))
    entries = entries_of(task_type)
    right = expected = variance = 0.0
    for draw in range(2000):
        entry = entries[draw % len(entries)]
        truth = demo().accuracy(entry, skill)
        expected += truth
        variance += truth * (1 - truth)
        right += letter_of(play(entry, skill, draw)) == entry.row.answer
    assert abs(right - expected) < 4 * math.sqrt(variance)


def test_confidence_follows_the_truth() -> None:
    """Right answers are surer, and not always."""
    entries = entries_of("Action Recognition")
    sure: dict[bool, list[float]] = {True: [], False: []}
    for draw in range(600):
        entry = entries[draw % len(entries)]
        attempt = play(entry, skill_of("Action Recognition"), draw)
        sure[letter_of(attempt) == entry.row.answer].append(attempt.confidence)
    mean = {right: sum(values) / len(values) for right, values in sure.items()}
    assert mean[True] > mean[False] + 0.1
    assert max(sure[False]) > min(sure[True])


def test_forms_are_rarely_sloppy() -> None:
    """A few fences, full stops and small letters; few first replies that cannot be read."""
    entries = entries_of("Counting Problem")
    forms: Counter[str] = Counter()
    for draw in range(2000):
        attempt = play(entries[draw % len(entries)], skill_of("Counting Problem"), draw)
        forms["fence"] += attempt.raws[-1].startswith("```")
        forms["dot"] += attempt.letter.endswith(".")
        forms["small"] += attempt.letter.islower()
        forms["unreadable"] += attempt.unreadable
        assert attempt.unreadable <= 1
        assert attempt.tools[0] == "search_similar"
        assert 2 <= len(attempt.tools) <= 3
    for form in ("fence", "dot", "small", "unreadable"):
        assert 10 <= forms[form] <= 60, forms


def test_seed_and_skill_change_the_draw() -> None:
    """Equal requests get equal replies; the first request's seed makes another attempt."""
    entry = entries_of("Object Recognition")[0]
    skill = skill_of("Object Recognition")
    first = agent_turns(entry, skill)
    assert agent_reply(demo(), 7, first, 1) == agent_reply(demo(), 7, first, 1)
    plans = {agent_reply(demo(), w, first, s) for w in (7, 8) for s in (1, 2, None)}
    plans.add(agent_reply(demo(), 7, agent_turns(entry, f"{skill}\n- More."), 1))
    assert len(plans) == 7


def test_fate_is_carried_through_the_conversation() -> None:
    """Later turns follow the plan in the first reply, whatever their own seed."""
    entry = entries_of("Object Recognition")[1]
    turns = agent_turns(entry, skill_of("Object Recognition"))
    opening = agent_reply(demo(), 7, turns, 3)
    assert re.search(r"plan [0-9a-f]{12}", opening)
    turns = (*turns, Turn("assistant", opening), Turn("user", "Last step. Submit your answer."))
    assert agent_reply(demo(), 7, turns, 4) == agent_reply(demo(), 7, turns, 5)
    read = decode_reply(agent_reply(demo(), 7, turns, 4), Reply)
    assert isinstance(read, Decoded)
    assert read.value.action.tool == "submit_answer"


@pytest.mark.parametrize("role", ["user", "tool"])
def test_an_agent_that_may_choose_reads_a_strategy_and_acts_by_it(role: str) -> None:
    """Mostly its class's own; its lessons help those who read them and nobody else."""
    task_type = "Temporal Reasoning"
    skill = skill_of(task_type)
    skill += "".join(f"{lesson.text}\n" for lesson in demo().lessons_of(task_type))
    entries = entries_of(task_type)
    taught: list[bool] = []
    astray: list[bool] = []
    for draw in range(800):
        entry = entries[draw % len(entries)]
        attempt = play(entry, skill, draw, opening=choosing_turns(entry), role=role)
        reads = [raw for raw in attempt.raws if '"read_skill"' in raw]
        assert len(reads) == 1
        assert attempt.tools[:2] == ["read_skill", "search_similar"]
        right = letter_of(attempt) == entry.row.answer
        (taught if f'"{slug(task_type)}"' in reads[0] else astray).append(right)
    assert 20 < len(astray) < 160
    assert sum(taught) / len(taught) > sum(astray) / len(astray) + 0.2


def test_a_class_that_is_told_where_it_is_to_be_found_out_is_refused() -> None:
    """Strict: the label in a request that offers a choice is a fault of the request."""
    entry = entries_of("Temporal Reasoning")[0]
    system, _ = choosing_turns(entry)
    with pytest.raises(LayoutError, match="Task type"):
        agent_reply(demo(), 7, (system, agent_turns(entry, "x")[1]), 1)
    nothing = Turn("system", "# Strategies\n\nNone.\n")
    with pytest.raises(LayoutError, match="names none"):
        agent_reply(demo(), 7, (nothing, choosing_turns(entry)[1]), 1)


def test_a_last_step_before_a_strategy_was_read_is_answered() -> None:
    entry = entries_of("Temporal Reasoning")[0]
    turns = choosing_turns(entry)
    opening = agent_reply(demo(), 7, turns, 3)
    turns = (*turns, Turn("assistant", "plan 0123456789ab"), Turn("user", "Last step. Submit now."))
    read = decode_reply(agent_reply(demo(), 7, turns, 4), Reply)
    assert "plan" in opening
    assert isinstance(read, Decoded)
    assert read.value.action.tool == "submit_answer"


def test_foreign_conversation_is_refused() -> None:
    """Assistant turns without a plan, other orders, questions of no world."""
    entry = entries_of("Object Recognition")[1]
    turns = agent_turns(entry, skill_of("Object Recognition"))
    with pytest.raises(LayoutError, match="plan"):
        agent_reply(demo(), 7, (*turns, Turn("assistant", "{}"), observation(1, "x")), 1)
    with pytest.raises(LayoutError, match="begins with"):
        agent_reply(demo(), 7, turns[1:], 1)
    with pytest.raises(LayoutError, match="user's or a tool's"):
        agent_reply(demo(), 7, (*turns, Turn("assistant", "plan 0123456789ab")), 1)
    other = Turn("user", turns[1].text.replace(entry.row.question, "What is the time?"))
    with pytest.raises(NotPlanted):
        agent_reply(demo(), 7, (turns[0], other), 1)


def test_fraction_is_uniform_enough() -> None:
    """The draws behind everything: mean one half, all tenths hit alike."""
    draws = [fraction("uniform", at) for at in range(4000)]
    assert abs(sum(draws) / len(draws) - 0.5) < 0.02
    assert all(300 < n < 500 for n in Counter(int(x * 10) for x in draws).values())


def test_prompts_count_as_the_skill_does() -> None:
    """A lesson of the system prompt or of a tool prompt is told there, or in the skill."""
    lesson = next(x for x in demo().world.lessons if x.document == "view_node")
    entry = next(e for e in demo().entries if lesson.lesson_id in e.planted.needs)
    skill = skill_of(entry.row.task_type)
    system, first = agent_turns(entry, skill)
    taught = Turn("system", system.text.replace("Opens.", f"Opens.\n{lesson.text}"))
    assert taught != system
    right = {
        name: sum(
            play(entry, skill, seed, opening=opening).letter == entry.row.answer
            for seed in range(60)
        )
        for name, opening in (
            ("plain", (system, first)),
            ("prompt", (taught, first)),
            ("skill", agent_turns(entry, f"{skill}{lesson.text}\n")),
        )
    }
    assert right["prompt"] > right["plain"] + 10
    assert right["skill"] == pytest.approx(right["prompt"], abs=15)
