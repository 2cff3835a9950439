"""Edits applied to a document, each with a status, and the way back.

Never a fallback: a target that does not stand in the body exactly once is a reported
rejection. Row P1-6 in three layers: the target's whole span is held against everything
protected; target and payload must hold no marker; and after every single edit the text
is parsed again, and the edit is dropped unless all that is protected is still there
byte for byte and the document is sound. An edit that was applied cannot be applied again.
Pure; the appendix is written by ``regions``.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

import msgspec

from actors.evolver.document import SkillDocument, Span, holds_marker, parse
from actors.evolver.plain import plain
from protocol.evolver import Edit, EditReport, EditStatus

__all__ = [
    "Limits",
    "Patched",
    "Refusal",
    "Splice",
    "apply_edits",
    "find_target",
    "growth_left",
    "undo",
]

_BULLETS = ("- ", "* ", "+ ")
_JOINERS = "\u200c\u200d"


class Limits(msgspec.Struct, frozen=True):
    """Budgets of one step.

    edits: the most edits that are applied (the learning rate).
    max_chars, max_growth: of the body; growth as a share of the body before the step.
    """

    edits: int
    max_chars: int
    max_growth: float


class Refusal(msgspec.Struct, frozen=True):
    """Why an edit is not applied."""

    status: EditStatus
    detail: str


class Splice(msgspec.Struct, frozen=True):
    """At ``start``, ``removed`` gave way to ``inserted``."""

    start: int
    removed: str
    inserted: str


class Patched(msgspec.Struct, frozen=True):
    """The new text, one report per edit, and the inverse patch in the order to apply it."""

    text: str
    reports: tuple[EditReport, ...]
    inverse: tuple[Splice, ...]

    @property
    def applied(self) -> int:
        """How many edits changed the text."""
        return sum(report.status == "applied" for report in self.reports)


def growth_left(document: SkillDocument, limits: Limits) -> int:
    """Characters that the body may gain in this step; an empty body may grow to the limit."""
    size = len(document.body_text)
    if not document.body_text.strip():
        return max(0, limits.max_chars - size)
    return max(0, min(limits.max_chars - size, int(size * limits.max_growth)))


def apply_edits(
    text: str,
    edits: Sequence[Edit],
    limits: Limits,
    *,
    screen: Callable[[Edit], Refusal | None],
    frozen_headings: tuple[str, ...] = (),
) -> Patched:
    """Apply the valid edits in order on the running text.

    screen: refuses an edit for what it says (a leak, a repetition of a rejected one).
    """
    document = parse(text, frozen_headings)
    ceiling = len(document.body_text) + growth_left(document, limits)
    reports: list[EditReport] = []
    inverse: list[Splice] = []
    for edit in edits:
        outcome: Splice | Refusal | None = _screened(edit, screen)
        if document.problems:
            outcome = Refusal("protected", "; ".join(document.problems))
        elif outcome is None and len(inverse) >= limits.edits:
            outcome = Refusal("over_budget", f"the budget is {limits.edits} edits")
        elif outcome is None:
            outcome = _locate(document, edit)
        if isinstance(outcome, Splice):
            spliced = _spliced(document.text, outcome)
            after = parse(spliced, frozen_headings, document.newline)
            refusal = _compare(document, after, outcome, ceiling)
            if refusal is None and isinstance(_locate(after, edit), Splice):
                refusal = Refusal("ambiguous", "the target would stand there again")
            if refusal is None:
                document = after
                inverse.append(outcome)
                reports.append(EditReport(edit=edit, status="applied", detail=""))
                continue
            outcome = refusal
        reports.append(EditReport(edit=edit, status=outcome.status, detail=outcome.detail))
    return Patched(document.text, tuple(reports), tuple(reversed(inverse)))


def undo(text: str, inverse: Sequence[Splice]) -> str:
    """The text before the patch, byte for byte.

    Raises ValueError if the text is not what the patch produced.
    """
    for splice in inverse:
        end = splice.start + len(splice.inserted)
        if text[splice.start : end] != splice.inserted:
            raise ValueError(f"the patch's text is not at {splice.start}")
        text = text[: splice.start] + splice.removed + text[end:]
    return text


def _spliced(text: str, splice: Splice) -> str:
    end = splice.start + len(splice.removed)
    return text[: splice.start] + splice.inserted + text[end:]


def _screened(edit: Edit, screen: Callable[[Edit], Refusal | None]) -> Refusal | None:
    """Everything that can be said about an edit without looking at the document."""
    if edit.op in ("note", "momentum"):
        return Refusal("protected", f"a {edit.op} line goes into its region, not into the body")
    if holds_marker(edit.target) or holds_marker(edit.content):
        return Refusal("marker", "target or content holds a region marker")
    if edit.op != "delete" and not plain(edit.content).strip():
        return Refusal("empty", f"{edit.op} without content")
    if edit.op != "append" and not plain(edit.target).strip():
        return Refusal("empty", f"{edit.op} without a target")
    return screen(edit)


def find_target(document: SkillDocument, edit: Edit) -> Span | Refusal:
    """Where the target stands in the body, if it does so once and may be touched.

    Line ends around the target help to find it, but are not part of the span: they are not
    what the edit is about.
    """
    target = _lines(edit.target, "\n")
    places = _occurrences(document, target)
    if not places:
        if target in _lines(document.body_text, "\n"):
            return Refusal("no_match", "the target would cut a character or a line end in two")
        if target in _lines(document.text, "\n"):
            return Refusal("protected", "the target meets the front matter or a region")
        return Refusal("no_match", "the target does not occur in the body")
    if len(places) > 1:
        return Refusal("ambiguous", "the target occurs more than once in the body")
    if any(places[0].meets(span) for span in document.frozen):
        return Refusal("frozen", "the target meets a frozen section")
    found = document.text[places[0].start : places[0].end]
    return Span(
        places[0].end - len(found.lstrip("\r\n")), places[0].start + len(found.rstrip("\r\n"))
    )


def _locate(document: SkillDocument, edit: Edit) -> Splice | Refusal:
    payload = _lines(edit.content.strip("\r\n"), document.newline)
    if edit.op == "append":
        return _already_said(document, payload) or _append(document, payload)
    core = find_target(document, edit)
    if isinstance(core, Refusal):
        return core
    if edit.op == "insert_after":
        return _already_said(document, payload) or _insert_after(document, core, payload)
    if edit.op == "delete":
        return _delete(document, core)
    if _stands_around(document, core, payload):
        return Refusal("noop", "the content is what stands there")
    return Splice(core.start, document.text[core.start : core.end], payload)


def _stands_around(document: SkillDocument, core: Span, payload: str) -> bool:
    """Whether the payload is there already, the target being a part of it or all of it."""
    target = document.text[core.start : core.end]
    offset = payload.find(target)
    while offset >= 0:
        start = core.start - offset
        if start >= document.body.start and document.text.startswith(payload, start):
            return True
        offset = payload.find(target, offset + 1)
    return False


def _lines(text: str, newline: str) -> str:
    """The text with the document's line ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", newline)


def _occurrences(document: SkillDocument, target: str) -> list[Span]:
    """Where the target stands in the body, overlapping ones too; two are enough to know.

    The target's line ends are LF and stand for the body's, of either kind.
    """
    text, origin = document.text, document.body.start
    body = document.body_text
    unified = body.replace("\r\n", "\n")
    places: list[Span] = []
    at = unified.find(target)
    while at >= 0 and len(places) < 2:
        start, end = (origin + _offset(body, place) for place in (at, at + len(target)))
        if not (_splits(text, start) or _splits(text, end)):
            places.append(Span(start, end))
        at = unified.find(target, at + 1)
    return places


def _offset(text: str, unified: int) -> int:
    """The place in a text of a place in its form with line feeds only."""
    line_end = text.find("\r\n")
    while 0 <= line_end < unified:
        unified += 1
        line_end = text.find("\r\n", line_end + 2)
    return unified


def _splits(text: str, position: int) -> bool:
    """Whether a cut here parts what is written as one: CR from LF, or a character from its marks.

    Marks, joiners, variation and skin tone signs, joined emoji, flags, Hangul vowels.
    """
    if not 0 < position < len(text):
        return False
    before, after = text[position - 1], text[position]
    if after < "\x7f" and before != "\u200d":
        return before == "\r" and after == "\n"
    if unicodedata.category(after)[0] == "M" or after in _JOINERS or before == "\u200d":
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f":
        return True
    if "\u1160" <= after <= "\u11ff":
        return "\u1100" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3"
    if "\U0001f1e6" <= after <= "\U0001f1ff":
        letters = 0
        while letters < position and "\U0001f1e6" <= text[position - letters - 1] <= "\U0001f1ff":
            letters += 1
        return letters % 2 == 1
    return False


def _already_said(document: SkillDocument, payload: str) -> Refusal | None:
    there = {line.strip() for line in document.body_text.splitlines()}
    if all(line.strip() in there for line in payload.splitlines() if line.strip()):
        return Refusal("noop", "the document already says it")
    return None


def _append(document: SkillDocument, payload: str) -> Splice:
    newline, body = document.newline, document.body_text
    kept = body.rstrip()
    start = document.body.start + len(kept)
    if document.frozen and document.frozen[-1].end > start:
        # Not a blank line may go into the section: the payload stands behind it, if at all.
        end = document.body.end
        return Splice(end, "", ("" if body.endswith("\n") else newline) + payload + newline)
    last, first = kept.rsplit("\n", 1)[-1].lstrip(), payload.lstrip()
    if not document.text[:start]:
        before = ""
    elif last[:2] in _BULLETS and first[:2] in _BULLETS:
        before = newline
    else:
        before = newline * 2
    after = "" if body[len(kept) :].startswith(("\n", "\r\n")) else newline
    return Splice(start, "", before + payload + after)


def _insert_after(document: SkillDocument, core: Span, payload: str) -> Splice:
    text, newline = document.text, document.newline
    line_end = text.find("\n", core.end, document.body.end)
    if line_end < 0:
        # The last line of the body: a marker may follow on the same line.
        start = document.body.end
        return Splice(start, "", newline + payload + (newline if start < len(text) else ""))
    if text[line_end - 1 : line_end] == "\r" and line_end > core.end:
        line_end -= 1
    return Splice(line_end, "", newline + payload)


def _delete(document: SkillDocument, core: Span) -> Splice:
    """Remove the target, and its line end if nothing of the line is left."""
    text = document.text
    end = core.end
    if text[core.start - 1 : core.start] in ("", "\n"):
        for line_end in ("\r\n", "\n"):
            if text.startswith(line_end, end) and end + len(line_end) <= document.body.end:
                end += len(line_end)
                break
    return Splice(core.start, text[core.start : end], "")


def _compare(
    before: SkillDocument, after: SkillDocument, splice: Splice, ceiling: int
) -> Refusal | None:
    """The third layer: what is protected stands unchanged, the result is sound and not too long."""
    if before.text == after.text:
        return Refusal("noop", "the text does not change")
    if after.problems:
        return Refusal("protected", "; ".join(after.problems))
    if before.front != after.front or before.tail != after.tail:
        return Refusal("protected", "the edit would change the front matter or a region")
    if before.frozen_texts != after.frozen_texts:
        return Refusal("frozen", "the edit would change a frozen section")
    if not _reads_the_same(
        before,
        _covered(before, splice.start + len(splice.removed)),
        _covered(after, splice.start + len(splice.inserted)),
    ):
        return Refusal("protected", "the edit would open or close a code fence over other text")
    size = len(after.body_text)
    if size > ceiling and size > len(before.body_text):
        return Refusal("too_long", f"the body would have {size} characters, {ceiling} are allowed")
    return None


def _reads_the_same(
    before: SkillDocument, was: list[tuple[int, int]], now: list[tuple[int, int]]
) -> bool:
    """Whether fences and comments hold the same text as before; where one was left open, they
    may also hold less of it: that is its repair."""
    if not before.open_fence:
        return was == now
    return all(any(old[0] <= new[0] and new[1] <= old[1] for old in was) for new in now)


def _covered(document: SkillDocument, position: int) -> list[tuple[int, int]]:
    """What stands in code fences and comments behind a position, counted from the body's end.

    Blank lines do not count; an open block has a last entry of its own.
    """
    end = document.body.end
    behind = (Span(max(block.start, position), block.end) for block in document.blocks)
    covered = [
        (span.start - end, span.end - end)
        for span in behind
        if span.start < span.end and document.text[span.start : span.end].strip()
    ]
    return covered + [(0, 0)] * document.open_fence
