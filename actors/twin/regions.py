"""The simulated editor as the writer of regions: compacted notes, and momentum.

Pure; one kind per reply, drawn as for an edit. Momentum keeps what it said the epoch before
and puts a line or two before it: a lesson that the skill lacks, a filler, or a trap. A helpful
reply leaves out of the old lines those that mislead.
"""

from __future__ import annotations

import re

import msgspec

from actors.twin.briefs import MomentumBrief, NotesBrief
from actors.twin.catalog import Catalog
from actors.twin.chance import number, pick
from actors.twin.document import momentum_lines, without_momentum
from actors.twin.ideas import Kind, Past, bare, propose, trap_lines
from actors.twin.layout import body_of
from actors.twin.shares import Shares, mended_kind, slot_kind, spoil
from actors.twin.world import Subject, fold

__all__ = ["MomentumOut", "NotesOut", "momentum_reply", "notes_reply"]

# What this editor puts before a rule that it says again.
_LEAD = re.compile(r"\A(?:do not skip this: |keep in mind: |make it a habit\. )+", re.IGNORECASE)
_REASONING = "Regressions first, then what stayed wrong; what works is left alone."


class NotesOut(msgspec.Struct, frozen=True):
    """The reply about notes; field names are those of the request."""

    notes: tuple[str, ...]


class MomentumOut(msgspec.Struct, frozen=True):
    """The reply about momentum; field names are those of the request."""

    reasoning: str
    momentum: tuple[str, ...]


def notes_reply(
    catalog: Catalog, brief: NotesBrief, shares: Shares, key: tuple[object, ...], *, mend: bool
) -> str:
    """Notes of the same content united. mend: after a complaint."""
    kind, spoilt = _kind(shares, key, mend=mend)
    notes = _united(brief.notes, brief.at_most)
    if kind == "useless":
        notes = list(dict.fromkeys(brief.notes))[: brief.at_most]  # the first ones as they are
    elif kind == "harmful":
        traps = catalog.traps_for(Subject.skill(brief.task_type))
        kept = notes[: max(0, brief.at_most - 1)]
        notes = [*kept, pick(traps, "trap", *key).text[2:]] if traps else notes[:1]
    text = msgspec.json.encode(NotesOut(tuple(notes))).decode()
    wrong = NotesOut(() if number(0, 1, "none", *key) else (*brief.notes, *brief.notes))
    return spoil(text, msgspec.json.encode(wrong).decode(), *key) if spoilt else text


def momentum_reply(
    catalog: Catalog, brief: MomentumBrief, shares: Shares, key: tuple[object, ...], *, mend: bool
) -> str:
    """The lines of the momentum region, within its budget. mend: after a complaint."""
    kind, spoilt = _kind(shares, key, mend=mend)
    lines = _momentum(catalog, brief, kind, key)
    while sum(len(line) + 3 for line in lines) > brief.budget:  # a dash, a space, a line end
        lines.pop()
    out = MomentumOut(_REASONING, tuple(lines))
    text = msgspec.json.encode(out).decode()
    wrong = msgspec.json.encode({"reasoning": _REASONING, "momentum": " ".join(lines)}).decode()
    return spoil(text, wrong, *key) if spoilt else text


def _momentum(
    catalog: Catalog, brief: MomentumBrief, kind: Kind, key: tuple[object, ...]
) -> list[str]:
    """What is new, then the old lines that are still right; the body is never repeated."""
    subject = Subject.skill(brief.task_type)
    rules = fold(body_of(without_momentum(brief.skill)))
    lines = [line for line in momentum_lines(brief.skill) if fold(line) not in rules]
    if kind == "helpful":
        misleading = trap_lines(catalog, subject, lines)
        lines = [line for line in lines if line not in misleading]
    wrong = [one.question_id for one in brief.compared if one.change in ("regressed", "persistent")]
    past = Past(said=rules, rejected="", now=frozenset(map(bare, lines)))
    new: list[str] = []
    for slot in range(number(1, 2, "slots", *key) if wrong else 0):
        proposed = propose(kind, catalog, subject, wrong, past, slot, *key)
        if proposed is None:
            break
        line = proposed[1].line.removeprefix("- ")
        new.append(line)
        past = past.also(line)
    return [*new, *lines]


def _united(notes: tuple[str, ...], at_most: int) -> list[str]:
    """Notes of the same rule are one; if that is not enough, neighbours share a line."""
    by_rule: dict[str, str] = {}
    for note in notes:
        rule = _rule(note)
        if rule not in by_rule or len(note) < len(by_rule[rule]):
            by_rule[rule] = note
    united = list(by_rule.values())
    while len(united) > max(1, at_most):
        # The two shortest neighbours, so that no line grows long; the second loses its lead.
        at = min(range(len(united) - 1), key=lambda i: len(united[i]) + len(united[i + 1]))
        second = united.pop(at + 1)
        # Never longer together than apart, or the compacted notes would be refused.
        united[at] = f"{united[at].rstrip('.')}; {_LEAD.sub('', second).rstrip('.')}"
    return united


def _rule(note: str) -> str:
    """The rule that a note brings to mind, folded."""
    return fold(_LEAD.sub("", note))


def _kind(shares: Shares, key: tuple[object, ...], *, mend: bool) -> tuple[Kind, bool]:
    """The kind of a reply as a whole, and whether it is spoilt."""
    kind = slot_kind(shares, 0, *key)
    if kind != "malformed":
        return kind, False
    return mended_kind(shares, *key), not mend
