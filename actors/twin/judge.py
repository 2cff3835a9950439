"""The simulated judge: names what the planted truth says was missing, and errs at a given rate.

Pure. A finding names a lesson's *topic*: never the lesson's text, never an answer.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from actors.twin.catalog import Catalog
from actors.twin.chance import fraction, number, pick
from actors.twin.layout import JudgeBrief, LayoutError, body_of, judge_brief
from actors.twin.wire import Turn
from actors.twin.world import holds

__all__ = ["Verdict", "judge_reply"]

_UNREAD = "Your reply could not be read:"
_BROKEN_SHARE = 0.02
_NODE = re.compile(r"[\w-]+_L[123]_\d+")

Cause = Literal["defect", "lapse", "uncertain"]


class Verdict(msgspec.Struct, frozen=True):
    """The judge's reply; field names are those of the prompt."""

    completeness: float
    hallucination: float
    missed_nodes: tuple[str, ...]
    evidence_sufficient: bool
    reasoning_failure: str | None
    cause: Cause
    finding: str


def judge_reply(
    catalog: Catalog, world_seed: int, judge_noise: float, turns: tuple[Turn, ...], seed: int | None
) -> str:
    """The judge's reply.

    judge_noise: share of verdicts that are another plausible one. Raises LayoutError or
    NotPlanted for a request that is not a judge's.
    """
    asked = next((turn.text for turn in turns if turn.role == "user"), None)
    if asked is None:
        raise LayoutError("a judge's request has a user message")
    brief = judge_brief(asked)
    key = ("judge", world_seed, asked, seed)
    verdict = _verdict(catalog, brief, judge_noise, key)
    reply = msgspec.json.encode(verdict).decode()
    again = turns[-1].role == "user" and turns[-1].text.startswith(_UNREAD)
    if not again and fraction("broken", *key) < _BROKEN_SHARE:
        return reply[: len(reply) * 2 // 3]
    return reply


def _verdict(
    catalog: Catalog, brief: JudgeBrief, judge_noise: float, key: tuple[object, ...]
) -> Verdict:
    cause, finding = _truth(catalog, brief)
    if fraction("noise", *key) < judge_noise:
        others = [other for other in _others(catalog, brief) if other[1] != finding]
        cause, finding = pick(others, "other", *key)
    missed = _missed(brief, key) if cause == "defect" else ()
    enough = not missed and fraction("enough", *key) < 0.6
    return Verdict(
        completeness=round(0.5 + 0.5 * fraction("completeness", *key), 2),
        hallucination=round(0.4 * fraction("hallucination", *key), 2),
        missed_nodes=missed,
        evidence_sufficient=enough,
        reasoning_failure=_failure(key) if enough else None,
        cause=cause,
        finding=finding,
    )


def _truth(catalog: Catalog, brief: JudgeBrief) -> tuple[Cause, str]:
    """What the world knows about this failure."""
    entry = catalog.find(brief.block)
    skill = body_of(brief.skill)
    for name in entry.planted.needs:
        lesson = catalog.lessons[name]
        if not holds(skill, lesson.key):
            return "defect", _gap(lesson.topic)
    if any(holds(skill, trap.key) for trap in catalog.traps_of(entry.row.task_type)):
        return (
            "defect",
            "A rule of the strategy misleads: the agent obeyed it against the evidence it had.",
        )
    return (
        "lapse",
        "The strategy covers this case, but the agent did not carry out one of its checks.",
    )


def _others(catalog: Catalog, brief: JudgeBrief) -> list[tuple[Cause, str]]:
    """Plausible verdicts, each of a different text."""
    topics = [lesson.topic for lesson in catalog.lessons_of(brief.block.task_type)]
    found: list[tuple[Cause, str]] = [("defect", _gap(topic)) for topic in topics]
    found.append(("lapse", "A step of the strategy that would have helped was left out."))
    found.append(("uncertain", "The trajectory does not show why the answer came out wrong."))
    return found


def _gap(topic: str) -> str:
    return f"The strategy says nothing about {topic}: an agent that follows it fails here too."


def _missed(brief: JudgeBrief, key: tuple[object, ...]) -> tuple[str, ...]:
    """In a third of the cases: a node that was shown once and never came up again."""
    if fraction("missed", *key) >= 1 / 3:
        return ()
    shown = _NODE.findall(brief.trajectory)
    once = [node for node in dict.fromkeys(shown) if shown.count(node) == 1]
    return (pick(once, "node", *key),) if once else ()


def _failure(key: tuple[object, ...]) -> str:
    kinds = ("evidence_misread", "evidence_ignored", "weighing_error", "logic_error")
    return kinds[number(0, len(kinds) - 1, "failure", *key)]
