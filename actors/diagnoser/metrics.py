"""What can be said about a trajectory without a model. Pure.

The definitions follow the field's usual ones: consecutive queries are compared by the
Jaccard index of their character trigrams, levels are read from the node ids.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from prompts.trajectory import submission_of
from protocol.rollout import Step

__all__ = ["Metrics", "ToolUse", "describe", "measure", "seen_nodes"]

CONFIDENT = 0.7
_LEVEL = re.compile(r"_L(\d+)_")
_SEARCHES = ("search_similar", "search_subtitles")


class ToolUse(msgspec.Struct, frozen=True):
    """How often a tool was called."""

    tool: str
    calls: int


class Metrics(msgspec.Struct, frozen=True):
    """Rule metrics of one wrong answer.

    steps, tokens: of the budget, what was used.
    format_compliance: share of replies that could be read.
    tools: calls that look at the video, per tool; ``submit_answer`` is not among them.
    grounded_calls: of these, the ones that showed nodes to hold the agent's claims against.
    repeat_visits: share of visits to a node that had been opened before.
    query_repetition: highest trigram Jaccard index of two queries in a row.
    levels: levels of the opened nodes, ``L1>L3``; level_jumps: moves across a level.
    confidence: as stated, None if it was not; overconfident: sure and wrong.
    """

    steps: int
    tokens: int
    format_compliance: float
    tools: tuple[ToolUse, ...]
    grounded_calls: int
    repeat_visits: float
    query_repetition: float
    levels: str
    level_jumps: int
    confidence: float | None
    overconfident: bool

    @property
    def calls(self) -> int:
        """Calls that look at the video."""
        return sum(use.calls for use in self.tools)


def measure(steps: Sequence[Step]) -> Metrics:
    """The metrics of a rollout that ended in a wrong answer."""
    looks = [step for step in steps if step.tool not in (None, "submit_answer")]
    visits = [node for node in map(_opened, looks) if node is not None]
    queries = [_argument(step, "query") for step in looks if step.tool in _SEARCHES]
    levels = [int(found[1]) for found in map(_LEVEL.search, visits) if found]
    submission = submission_of(steps)
    confidence = submission.confidence if submission else None
    readable = sum(step.tool is not None for step in steps)
    used = Counter(step.tool for step in looks if step.tool is not None)
    return Metrics(
        steps=len(steps),
        tokens=sum(step.prompt_tokens + step.completion_tokens for step in steps),
        format_compliance=readable / len(steps) if steps else 0.0,
        tools=tuple(ToolUse(tool, used[tool]) for tool in sorted(used)),
        grounded_calls=sum(bool(step.node_ids) for step in looks),
        repeat_visits=1 - len(set(visits)) / len(visits) if visits else 0.0,
        query_repetition=max(
            (_similarity(one, other) for one, other in pairwise(queries)), default=0.0
        ),
        levels=">".join(f"L{level}" for level in levels),
        level_jumps=sum(abs(one - other) > 1 for one, other in pairwise(levels)),
        confidence=confidence,
        overconfident=confidence is not None and confidence >= CONFIDENT,
    )


def seen_nodes(steps: Sequence[Step]) -> frozenset[str]:
    """Nodes whose content the agent read: opened, or returned by a search."""
    seen = {node for node in map(_opened, steps) if node is not None}
    for step in steps:
        if step.tool in _SEARCHES:
            seen.update(step.node_ids)
    return frozenset(seen)


def describe(metrics: Metrics) -> str:
    """The metrics as lines for the judge."""
    tools = ", ".join(f"{use.tool} x{use.calls}" for use in metrics.tools) or "none"
    confidence = "not stated" if metrics.confidence is None else f"{metrics.confidence:.2f}"
    lines = (
        f"steps: {metrics.steps}, tokens: {metrics.tokens}",
        f"readable replies: {metrics.format_compliance:.0%}",
        f"calls: {tools}",
        f"levels opened: {metrics.levels or 'none'}, jumps across a level: {metrics.level_jumps}",
        f"repeated visits: {metrics.repeat_visits:.0%}",
        f"highest likeness of two queries in a row: {metrics.query_repetition:.2f}",
        f"stated confidence: {confidence}" + (" (sure and wrong)" if metrics.overconfident else ""),
    )
    return "\n".join(lines)


def _opened(step: Step) -> str | None:
    if step.tool != "view_node":
        return None
    return _argument(step, "node_id") or None


def _argument(step: Step, name: str) -> str:
    """An argument as text; empty if the agent sent something else (P0-4)."""
    try:
        sent = msgspec.json.decode(step.arguments)
    except msgspec.DecodeError:
        return ""
    value = sent.get(name) if isinstance(sent, dict) else None
    return value if isinstance(value, str) else ""


def _similarity(one: str, other: str) -> float:
    first, second = _trigrams(one), _trigrams(other)
    return len(first & second) / len(first | second) if first | second else 0.0


def _trigrams(text: str) -> frozenset[str]:
    folded = " ".join(text.casefold().split())
    if len(folded) < 3:
        return frozenset({folded} if folded else ())
    return frozenset(folded[index : index + 3] for index in range(len(folded) - 2))
