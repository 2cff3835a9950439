"""The simulated agent: looks into the tree like one, answers as the planted truth says.

Pure. Whether a question is answered right is drawn at the first turn, with the planted
probability under the skill and the prompts that it was given. The draw is named by a *plan*
(12 hex digits) in the first reply's thought, so that later turns, which arrive as requests of
their own, act out the same fate. Tool steps are honest: words of the question, and a node id
that stands in what was shown. An agent that has to choose its strategy reads one first, mostly
the right one, and what it read is the skill that counts beside the prompts.
"""

from __future__ import annotations

import json
import re

import msgspec

from actors.twin.catalog import Catalog, Entry
from actors.twin.chance import digest, fraction, number, pick
from actors.twin.layout import (
    LABELS,
    LayoutError,
    choice_of,
    prompts_of,
    question_block,
    strategy_of,
)
from actors.twin.wire import Turn
from protocol.keys import slug

__all__ = ["Fate", "agent_reply", "draw_fate"]

_PLAN = re.compile(r"\bplan ([0-9a-f]{12})\b")
_UNREAD = "Your reply could not be read:"
_LAST = "Last step."
_TELLING = ("user", "tool")
_UNREADABLE_SHARE = 0.015
_ASTRAY_SHARE = 0.1
# Sloppy, yet readable: three forms of 1.5 % each.
_SLOPPY_SHARE = 0.045
_DULL = re.compile(
    "an?|and|are|as|at|be|by|do|does|did|for|from|had|has|have|her?|him|his|how|in|is|its?|many|"
    "much|of|on|or|she|that|the|their|them|there|these|they|this|to|was|were|what|when|where|"
    "which|while|who|whose|why|will|with|you|your|video",
    re.IGNORECASE,
)

Json = dict[str, "str | float | Json"]


class Fate(msgspec.Struct, frozen=True):
    """What one attempt at a question comes to. looks: tool steps before the answer, 1 or 2."""

    right: bool
    letter: str
    confidence: float
    looks: int


def agent_reply(
    catalog: Catalog, world_seed: int, turns: tuple[Turn, ...], seed: int | None
) -> str:
    """The agent's next reply.

    seed: the request's; counts at the first turn only. Raises LayoutError or NotPlanted for a
    request that is not an agent's, or a conversation that did not begin here.
    """
    if len(turns) < 2 or turns[0].role != "system" or turns[1].role != "user":
        raise LayoutError("an agent's request begins with a system and a user message")
    if turns[-1].role not in _TELLING:
        raise LayoutError("the last message must be the user's or a tool's")
    system, first = turns[0].text, turns[1].text
    choice = choice_of(system)
    entry = catalog.find(question_block(first, labelled=choice is None))
    said = [turn.text for turn in turns if turn.role == "assistant"]
    if not said:
        plan = digest("plan", world_seed, system, first, seed)[:12]
        opening = f"plan {plan}: "
    else:
        plan = _plan_of(said)
        opening = ""
    if not said and fraction("unreadable", plan, world_seed) < _UNREADABLE_SHARE:
        return _unreadable(opening, entry, plan)
    strategy = strategy_of(system) if choice is None else _strategy_read(turns)
    if strategy is None:
        assert choice is not None, "without a choice the strategy is given"
        name = _chosen(choice, entry, plan)
        return _action(f"{opening}The strategy {name} fits.", "read_skill", {"name": name})
    fate = draw_fate(entry, catalog.accuracy(entry, strategy, prompts_of(system)), plan, world_seed)
    return _next(entry, fate, plan, opening, turns, choosing=choice is not None)


def draw_fate(entry: Entry, accuracy: float, plan: str, world_seed: int) -> Fate:
    """A plan's fate: right with probability ``accuracy``; confidence follows it, with noise."""
    key = (plan, world_seed, entry.row.question_id)
    right = fraction("right", *key) < accuracy
    letters = LABELS[: len(entry.row.options)]
    gold = letters[entry.gold]
    letter = gold if right else pick(letters.replace(gold, ""), "letter", *key)
    noise = fraction("confidence", *key) - 0.5
    confidence = 0.3 + 0.35 * accuracy + (0.2 if right else 0.0) + 0.4 * noise
    return Fate(
        right=right,
        letter=letter,
        confidence=round(min(0.98, max(0.05, confidence)), 2),
        looks=number(1, 2, "looks", *key),
    )


def _plan_of(said: list[str]) -> str:
    for text in said:
        found = _PLAN.search(text)
        if found is not None:
            return found.group(1)
    raise LayoutError("a conversation that did not begin here: no plan in the assistant's replies")


def _strategy_read(turns: tuple[Turn, ...]) -> str | None:
    """What ``read_skill`` brought; empty if the answer was due before it could; None: not yet."""
    asked = False
    for turn in turns[2:]:
        if turn.role == "assistant":
            asked = "read_skill" in turn.text
        elif asked and not turn.text.startswith(_UNREAD):
            return turn.text
    pressed = any(turn.text.startswith(_LAST) for turn in turns[2:])
    return "" if pressed else None


def _chosen(choice: tuple[str, ...], entry: Entry, plan: str) -> str:
    """The strategy of the question's own class; now and then, or where it lacks, another."""
    own = slug(entry.row.task_type)
    if own in choice and fraction("astray", plan) >= _ASTRAY_SHARE:
        return own
    return pick(choice, "strategy", plan)


def _next(
    entry: Entry, fate: Fate, plan: str, opening: str, turns: tuple[Turn, ...], *, choosing: bool
) -> str:
    """Search, perhaps open a node, then submit. choosing: a strategy was read first."""
    shown = [turn.text for turn in turns[2:] if turn.role in _TELLING]
    seen = [text for text in shown if not text.startswith(_UNREAD)]
    pressed = any(text.startswith(_LAST) for text in shown)
    looked = len(seen) - choosing
    if looked == 0 and not pressed:
        query = _query(entry, plan)
        thought = f"{opening}I look for {query!r} in the tree."
        return _action(thought, "search_similar", {"query": query})
    node = _node(entry, turns, plan)
    if looked < fate.looks and not pressed and node is not None:
        return _action(f"{opening}I open {node}.", "view_node", {"node_id": node})
    return _submit(fate, plan, opening, node, again=bool(shown) and shown[-1].startswith(_UNREAD))


def _query(entry: Entry, plan: str) -> str:
    words = re.findall(r"[\w'-]+", entry.row.question)
    telling = [word for word in dict.fromkeys(words) if not _DULL.fullmatch(word)]
    chosen = telling or words
    return " ".join(chosen[: number(2, 4, "query", plan)])


def _node(entry: Entry, turns: tuple[Turn, ...], plan: str) -> str | None:
    """An id that the latest message with ids shows; None: no id was ever shown."""
    named = re.compile(rf"{re.escape(entry.row.video_id)}_L[123]_\d+")
    for turn in reversed(turns[1:]):
        found: list[str] = named.findall(turn.text) if turn.role in _TELLING else []
        ids = list(dict.fromkeys(found))
        if ids:
            return pick(ids[:3], "node", plan)
    return None


def _submit(fate: Fate, plan: str, opening: str, node: str | None, *, again: bool) -> str:
    letter, fenced = fate.letter, False
    sloppy = fraction("sloppy", plan)
    if sloppy < _SLOPPY_SHARE and not again:
        if sloppy < _SLOPPY_SHARE / 3:
            fenced = True
        elif sloppy < _SLOPPY_SHARE * 2 / 3:
            letter = f"{letter}."
        else:
            letter = letter.lower()
    answer: Json = {
        "answer": letter,
        "confidence": fate.confidence,
        "evidence": "the top level of the tree" if node is None else f"{node}: its card",
        "reasoning": f"Of the options, {fate.letter} agrees best with what the tree shows.",
    }
    reply = _action(f"{opening}This is enough to answer.", "submit_answer", answer)
    return f"```json\n{reply}\n```" if fenced else reply


def _unreadable(opening: str, entry: Entry, plan: str) -> str:
    """A first reply that no parser can read, with the plan in it all the same."""
    query = _query(entry, plan)
    if fraction("unreadable-form", plan) < 0.5:
        return f"{opening}I would like to search the tree for {query!r} before I say anything."
    whole = _action(f"{opening}I look for {query!r}.", "search_similar", {"query": query})
    return whole[: whole.index('"args"') + 9]  # broken off in the middle


def _action(thought: str, tool: str, args: Json) -> str:
    reply = {"thought": thought, "action": {"tool": tool, "args": args}}
    return json.dumps(reply, ensure_ascii=False)
