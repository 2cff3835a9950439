"""The simulated judge: names what the planted truth says was missing, and errs at a given rate.

Pure. A finding names a lesson's *topic*: never the lesson's text, never an answer. The cause is
the world's truth, or another one at the rate of the noise; how the failure came about (grades,
missed nodes, kind of reasoning failure) is drawn, for the world has no truth about that.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from actors.twin.catalog import Catalog, Entry
from actors.twin.chance import fraction, number, pick
from actors.twin.document import bullets
from actors.twin.ideas import trap_lines
from actors.twin.layout import JudgeBrief, LayoutError, body_of, judge_brief
from actors.twin.wire import Turn
from actors.twin.world import SKILL, Subject, holds

__all__ = ["Graded", "Verdict", "judge_reply"]

_UNREAD = "Your reply could not be read:"
_BROKEN_SHARE = 0.02
_NODE = re.compile(r"[\w-]+_L[123]_\d+")
_NO_RULE = "none"

Cause = Literal["defect", "lapse", "uncertain"]
Followed = Literal["yes", "no", "unclear", "none"]
Amount = Literal["all", "most", "half", "little", "nothing"]
# Never so bad that it would be a failed extraction: that is not what the world plants.
_KEPT: tuple[Amount, ...] = ("all", "all", "most", "half")
_INVENTED: tuple[Amount, ...] = ("nothing", "nothing", "little")


class Graded(msgspec.Struct, frozen=True):
    """The grade of one call; field names are those of the prompt."""

    step: int
    kept: Amount
    invented: Amount


class Verdict(msgspec.Struct, frozen=True):
    """The judge's reply; field names and their order are those of the prompt."""

    calls: tuple[Graded, ...]
    missed_nodes: tuple[str, ...]
    evidence_sufficient: bool
    reasoning_failure: str | None
    finding: str
    rule: str
    followed: Followed
    cause: Cause


class _Opinion(msgspec.Struct, frozen=True):
    """The part of a verdict that the world has a truth about."""

    finding: str
    rule: str
    followed: Followed
    cause: Cause


def judge_reply(
    catalog: Catalog, world_seed: int, judge_noise: float, turns: tuple[Turn, ...], seed: int | None
) -> str:
    """The judge's reply.

    judge_noise: share of verdicts with another cause than the true one. Raises LayoutError or
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
    entry = catalog.find(brief.block)
    opinion = _truth(catalog, entry, brief, key)
    if fraction("noise", *key) < judge_noise:
        opinion = pick(_others(catalog, brief, opinion.cause, key), "other", *key)
    missed = _missed(brief, key) if opinion.cause == "defect" else ()
    enough = not missed and fraction("enough", *key) < 0.6
    return Verdict(
        calls=tuple(
            Graded(step, pick(_KEPT, "kept", step, *key), pick(_INVENTED, "invented", step, *key))
            for step in brief.graded
        ),
        missed_nodes=missed,
        evidence_sufficient=enough,
        reasoning_failure=_failure(key) if enough else None,
        finding=opinion.finding,
        rule=opinion.rule,
        followed=opinion.followed,
        cause=opinion.cause,
    )


def _truth(catalog: Catalog, entry: Entry, brief: JudgeBrief, key: tuple[object, ...]) -> _Opinion:
    """What the world knows about this failure."""
    skill = body_of(brief.skill)
    subject = Subject.skill(entry.row.task_type)
    # The judge is shown no prompt: what is missing there, it cannot know.
    needed = [catalog.lessons[name] for name in entry.planted.needs]
    lessons = [lesson for lesson in needed if lesson.document == SKILL]
    for lesson in lessons:
        if not holds(skill, lesson.key):
            return _gap(lesson.topic)
    if any(holds(skill, trap.key) for trap in catalog.traps_of(entry.row.task_type)):
        rule = next(iter(trap_lines(catalog, subject, bullets(brief.skill))), _NO_RULE)
        return _Opinion(
            rule=rule,
            followed="none" if rule == _NO_RULE else "yes",
            cause="defect",
            finding="A rule of the strategy misleads: the agent obeyed it against the evidence "
            "it had.",
        )
    known = [rule for rule in bullets(brief.skill) if any(holds(rule, x.key) for x in lessons)]
    return _slip(
        known or bullets(brief.skill),
        "The strategy covers this case, but the agent did not carry out one of its checks.",
        key,
    )


def _others(
    catalog: Catalog, brief: JudgeBrief, cause: Cause, key: tuple[object, ...]
) -> list[_Opinion]:
    """Plausible verdicts of another cause."""
    task_type, rules = brief.block.task_type, bullets(brief.skill)
    traps = trap_lines(catalog, Subject.skill(task_type), rules)
    topics = [lesson.topic for lesson in catalog.lessons_of(task_type)]
    said = [
        *(_gap(topic) for topic in topics or ["this kind of question"]),
        _slip(
            [rule for rule in rules if rule not in traps],
            "A step of the strategy that would have helped was left out.",
            key,
        ),
        _unclear(),
    ]
    return [opinion for opinion in said if opinion.cause != cause]


def _gap(topic: str) -> _Opinion:
    return _Opinion(
        rule=_NO_RULE,
        followed="none",
        cause="defect",
        finding=f"The strategy says nothing about {topic}: an agent that follows it fails here "
        "too.",
    )


def _slip(rules: list[str], finding: str, key: tuple[object, ...]) -> _Opinion:
    """A lapse names a rule; in a skill without any it cannot be told."""
    if not rules:
        return _unclear()
    rule = pick(rules, "rule", *key)
    return _Opinion(rule=rule, followed="no", cause="lapse", finding=finding)


def _unclear() -> _Opinion:
    return _Opinion(
        rule=_NO_RULE,
        followed="unclear",
        cause="uncertain",
        finding="The trajectory does not show why the answer came out wrong.",
    )


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
