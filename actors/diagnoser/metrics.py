"""What can be said about a trajectory without a model. Pure; reads the stored steps only.

The definitions follow the field's usual ones: consecutive queries are compared by the
Jaccard index of their character trigrams, levels are read from the node ids. Shares lie
in [0, 1].
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from prompts.trajectory import SUBMIT, submission_of
from protocol.rollout import Step

__all__ = [
    "CONFIDENT",
    "EARLY",
    "Calibration",
    "Metrics",
    "ToolUse",
    "calibration_of",
    "describe",
    "gradable",
    "is_look",
    "measure",
    "mentioned_nodes",
    "seen_nodes",
]

Calibration = Literal["high_conf_wrong", "low_conf_right", "calibrated", "unstated"]
CONFIDENT = 0.7
HESITANT = 0.5
EARLY = 0.3
"""Below this share of its calls an agent that was wrong gave up looking too early."""

_VIEW = "view_node"
_NO_LOOKS = (None, SUBMIT, "read_skill")  # these show nothing of the video
# Calls whose whole ground truth is the text that they brought: card, subtitle and children of a
# node, or the hits of a search. A picture is not among them: the judge cannot see it.
_GROUNDED = (_VIEW, "search_similar", "search_subtitles")
_NODE_ID = re.compile(r"(?<![\w-])[\w-]+_L\d+_\d+")
_LEVEL = re.compile(r"_L(\d+)_")


class ToolUse(msgspec.Struct, frozen=True):
    """How often a tool was called. empty: calls of these that showed nothing."""

    tool: str
    calls: int
    empty: int = 0


class Metrics(msgspec.Struct, frozen=True):
    """Rule metrics of one answer.

    steps, tokens: of the budget, what was used. budget_use: calls over those that are allowed,
    None if that number is not known.
    format_compliance: share of replies that could be read; unreadable: the number of the others.
    tools: calls that look at the video, per tool; reading a skill and answering are none.
    repeated_calls: the very call of an earlier step, as the rollout flagged it.
    grounded_calls: of these, the ones that showed nodes to hold the agent's claims against.
    repeat_visits: share of visits to a node that had been opened before.
    query_repetition: highest trigram Jaccard index of two queries in a row.
    levels: levels of the opened nodes, ``L1>L3``; level_jumps: moves across a level.
    confidence: as stated, None if it was not; calibration: set against the outcome.
    """

    steps: int
    tokens: int
    budget_use: float | None
    format_compliance: float
    unreadable: int
    tools: tuple[ToolUse, ...]
    grounded_calls: int
    repeated_calls: int
    repeat_visits: float
    query_repetition: float
    levels: str
    level_jumps: int
    confidence: float | None
    calibration: Calibration

    @property
    def calls(self) -> int:
        """Calls that look at the video."""
        return sum(use.calls for use in self.tools)

    @property
    def early(self) -> bool:
        """Whether most of the budget was left; without a known budget: nothing was looked at."""
        return self.calls == 0 if self.budget_use is None else self.budget_use < EARLY


def measure(steps: Sequence[Step], *, right: bool = False, max_calls: int | None = None) -> Metrics:
    """The metrics of a rollout that ended in an answer.

    max_calls: calls that were allowed before the answer was due; None: not known.
    """
    looks = [step for step in steps if is_look(step.tool)]
    visits = [node for node in map(_opened, looks) if node is not None]
    queries = [query for step in looks if (query := _argument(step, "query")) is not None]
    levels = [int(found[1]) for found in map(_LEVEL.search, visits) if found]
    submission = submission_of(steps)
    confidence = submission.confidence if submission else None
    readable = sum(step.tool is not None for step in steps)
    used = Counter(step.tool for step in looks if step.tool is not None)
    empty = Counter(step.tool for step in looks if not step.node_ids)
    return Metrics(
        steps=len(steps),
        tokens=sum(step.prompt_tokens + step.completion_tokens for step in steps),
        budget_use=None if max_calls is None else min(1.0, len(looks) / max_calls),
        format_compliance=readable / len(steps) if steps else 0.0,
        unreadable=len(steps) - readable,
        tools=tuple(ToolUse(tool, used[tool], empty[tool]) for tool in sorted(used)),
        grounded_calls=sum(map(gradable, steps)),
        repeated_calls=sum("repeated" in step.flags for step in steps),
        repeat_visits=1 - len(set(visits)) / len(visits) if visits else 0.0,
        query_repetition=max(
            (_similarity(one, other) for one, other in pairwise(queries)), default=0.0
        ),
        levels=">".join(f"L{level}" for level in levels),
        level_jumps=sum(abs(one - other) > 1 for one, other in pairwise(levels)),
        confidence=confidence,
        calibration=calibration_of(confidence, right=right),
    )


def calibration_of(confidence: float | None, *, right: bool) -> Calibration:
    """Sure and wrong, unsure and right, or neither."""
    if confidence is None:
        return "unstated"
    if not right and confidence >= CONFIDENT:
        return "high_conf_wrong"
    if right and confidence < HESITANT:
        return "low_conf_right"
    return "calibrated"


def is_look(tool: str | None) -> bool:
    """Whether a call of this tool looks at the video."""
    return tool not in _NO_LOOKS


def gradable(step: Step) -> bool:
    """Whether the call has ground truth: it showed nodes, and as text."""
    return step.tool in _GROUNDED and bool(step.node_ids)


def seen_nodes(steps: Sequence[Step]) -> frozenset[str]:
    """Nodes whose content the agent read: opened, or shown by a search or an observation.

    A child that an opened node lists was named, not read.
    """
    seen = {node for node in map(_opened, steps) if node is not None}
    for step in steps:
        if step.tool != _VIEW:
            seen.update(step.node_ids)
    return frozenset(seen)


def mentioned_nodes(steps: Sequence[Step]) -> frozenset[str]:
    """Nodes that the trajectory names, without those that the video turned out not to have."""
    named: set[str] = set()
    invented: set[str] = set()
    for step in steps:
        named.update(step.node_ids)
        named.update(_NODE_ID.findall(f"{step.thought}\n{step.observation}"))
        if step.tool == _VIEW and not step.node_ids:
            invented.add(_argument(step, "node_id") or "")
    return frozenset(named - invented)


def describe(metrics: Metrics) -> str:
    """The metrics as lines for a reader."""
    tools = ", ".join(map(_describe_use, metrics.tools)) or "none"
    budget = (
        "" if metrics.budget_use is None else f", {metrics.budget_use:.0%} of the allowed calls"
    )
    confidence = "not stated" if metrics.confidence is None else f"{metrics.confidence:.2f}"
    remark = {"high_conf_wrong": " (sure and wrong)", "low_conf_right": " (unsure and right)"}
    lines = (
        f"steps: {metrics.steps}{budget}, tokens: {metrics.tokens}",
        f"readable replies: {metrics.format_compliance:.0%}",
        f"calls: {tools}",
        f"levels opened: {metrics.levels or 'none'}, jumps across a level: {metrics.level_jumps}",
        f"repeated visits: {metrics.repeat_visits:.0%}, repeated calls: {metrics.repeated_calls}",
        f"highest likeness of two queries in a row: {metrics.query_repetition:.2f}",
        f"stated confidence: {confidence}{remark.get(metrics.calibration, '')}",
    )
    return "\n".join(lines)


def _describe_use(use: ToolUse) -> str:
    return f"{use.tool} x{use.calls}" + (f" ({use.empty} showed nothing)" if use.empty else "")


def _opened(step: Step) -> str | None:
    """The node that a view showed; a view that was refused opened nothing."""
    if step.tool != _VIEW or not step.node_ids:
        return None
    return _argument(step, "node_id") or step.node_ids[0]


def _argument(step: Step, name: str) -> str | None:
    """An argument that is text; None if the agent sent something else or nothing (P0-4)."""
    try:
        sent = msgspec.json.decode(step.arguments)
    except msgspec.DecodeError:
        return None
    value = sent.get(name) if isinstance(sent, dict) else None
    return value if isinstance(value, str) else None


def _similarity(one: str, other: str) -> float:
    first, second = _trigrams(one), _trigrams(other)
    return len(first & second) / len(first | second) if first | second else 0.0


def _trigrams(text: str) -> frozenset[str]:
    folded = " ".join(text.casefold().split())
    if len(folded) < 3:
        return frozenset({folded} if folded else ())
    return frozenset(folded[index : index + 3] for index in range(len(folded) - 2))
