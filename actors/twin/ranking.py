"""The simulated editor as the one who ranks: mostly sensible, sometimes wrong.

Pure. helpful: by the planted truth; useless: by support alone; harmful: the worst first;
malformed: unreadable, or numbers that are none of the candidates'.
"""

from __future__ import annotations

import msgspec

from actors.twin.briefs import Candidate, RankBrief
from actors.twin.catalog import Catalog
from actors.twin.layout import body_of
from actors.twin.shares import Shares, mended_kind, slot_kind, spoil
from actors.twin.world import Subject, holds

__all__ = ["RankOut", "rank_reply", "worth_of"]

_REASONING = "What helps in many cases comes first, then what adds to it."


class RankOut(msgspec.Struct, frozen=True):
    """The reply; field names are those of the request."""

    reasoning: str
    selected: tuple[int, ...]


def rank_reply(
    catalog: Catalog, brief: RankBrief, shares: Shares, key: tuple[object, ...], *, mend: bool
) -> str:
    """Numbers of the chosen candidates, the best first. mend: after a complaint."""
    kind = slot_kind(shares, 0, *key)
    spoilt = kind == "malformed" and not mend
    if kind == "malformed":
        kind = mended_kind(shares, *key)

    def order(candidate: Candidate) -> tuple[float, int, int]:
        worth = 0.0 if kind == "useless" else worth_of(catalog, brief, candidate)
        good = -worth if kind == "harmful" else worth
        return -good, -candidate.support, candidate.number

    chosen = [one.number for one in sorted(brief.candidates, key=order)][: brief.choose]
    text = _written(chosen)
    if not spoilt:
        return text
    return spoil(text, _written([*chosen, len(brief.candidates) + 1, 0]), *key)


def worth_of(catalog: Catalog, brief: RankBrief, candidate: Candidate) -> float:
    """Logits that an edit is worth to the questions that it is about: the editor's good nose."""
    subject, skill = Subject.skill(brief.task_type), body_of(brief.skill)

    def comes(key: str) -> int:
        """1: the edit brings the key, -1: it takes it away, 0: nothing changes."""
        after, before = holds(candidate.content, key), holds(skill, key)
        if candidate.op == "delete":
            return -1 if before and holds(candidate.target, key) else 0
        return 1 if after and not before else 0

    gains = sum(lesson.gain * comes(lesson.key) for lesson in catalog.lessons_for(subject))
    return gains - sum(trap.harm * comes(trap.key) for trap in catalog.traps_for(subject))


def _written(numbers: list[int]) -> str:
    return msgspec.json.encode(RankOut(_REASONING, tuple(numbers))).decode()
