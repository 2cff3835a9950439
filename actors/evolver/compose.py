"""Edits that are switched on and off one by one: any subset of them gives a sound document.

For tests that compare a document with and without each of several undecided edits. Every
edit is found in the base text alone, never in another edit's; edits that meet each other are
put into one group, of which at most one may be on. A note or a momentum rule meets nothing: it is
a line of its own in a region at the tail, written behind the edits of the body. Pure.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import msgspec

from actors.evolver.document import Span, parse
from actors.evolver.patch import Limits, Patched, Refusal, apply_edits, find_target
from actors.evolver.tail import is_writing, line_refusal, with_lines
from protocol.evolver import Edit, EditReport

__all__ = ["Composition", "compose", "render"]

_FREE = Limits(edits=2**31, max_chars=2**31, max_growth=2.0**31)


class Composition(msgspec.Struct, frozen=True):
    """A base text and the edits that compose on it.

    edits: all that were given, in canonical order; the numbers below are places in it.
    groups: the edits that compose, each in one group; at most one of a group may be on.
    refused: what became of the others.
    """

    base: str
    edits: tuple[Edit, ...]
    groups: tuple[tuple[int, ...], ...]
    refused: tuple[EditReport, ...]
    frozen_headings: tuple[str, ...]

    @property
    def live(self) -> tuple[int, ...]:
        """The edits that compose, in canonical order."""
        return tuple(sorted(itertools.chain.from_iterable(self.groups)))


class _Fitted(msgspec.Struct, frozen=True):
    """An edit on the base alone.

    lines: where it touches the base, whole lines; None for an append or a line of a region, which
    touch none. added: the lines that stand only in its result; growth: characters of the body.
    """

    number: int
    edit: Edit
    lines: Span | None
    added: frozenset[str]
    growth: int


def compose(
    base: str,
    edits: Sequence[Edit],
    max_chars: int,
    frozen_headings: tuple[str, ...] = (),
) -> Composition:
    """Sort the edits into groups, and refuse those that do not compose.

    max_chars: of the body with every edit on that makes it longer; edits beyond are refused.
    """
    fitted: list[_Fitted] = []
    refused: list[EditReport] = []
    room = max_chars - len(parse(base, frozen_headings).body_text)
    for number, edit in enumerate(edits):
        if is_writing(edit):
            refusal = line_refusal(base, edit, edits[:number])
            found = refusal or _Fitted(number, edit, None, frozenset(), 0)
        else:
            found = _fit(base, number, edits, frozen_headings)
        if isinstance(found, _Fitted) and found.growth > max(0, room):
            found = Refusal("too_long", f"{room} characters are left beside the other edits")
        if isinstance(found, Refusal):
            refused.append(EditReport(edit=edit, status=found.status, detail=found.detail))
        else:
            room -= max(0, found.growth)
            fitted.append(found)
    return Composition(
        base=base,
        edits=tuple(edits),
        groups=_groups(base, fitted, frozen_headings),
        refused=tuple(refused),
        frozen_headings=frozen_headings,
    )


def render(composition: Composition, subset: Iterable[int]) -> str:
    """The base with these edits on, whatever order they are listed in.

    Raises ValueError if an edit does not compose, or two of a group are on.
    """
    chosen = sorted(set(subset))
    unknown = set(chosen) - set(composition.live)
    if unknown:
        raise ValueError(f"edits {sorted(unknown)} do not compose on this text")
    for group in composition.groups:
        if len(set(group) & set(chosen)) > 1:
            raise ValueError(f"more than one of the exclusive edits {group} is on")
    edits = [composition.edits[number] for number in chosen]
    body = [edit for edit in edits if not is_writing(edit)]
    patched = _apply(composition.base, body, composition.frozen_headings)
    if patched.applied < len(body):
        failed = [report.detail for report in patched.reports if report.status != "applied"]
        raise ValueError(f"edits {chosen} do not stand together: {'; '.join(failed)}")
    newline = parse(composition.base, composition.frozen_headings).newline
    return with_lines(patched.text, edits, newline)


def _apply(base: str, edits: Sequence[Edit], frozen_headings: tuple[str, ...]) -> Patched:
    return apply_edits(base, edits, _FREE, screen=lambda _: None, frozen_headings=frozen_headings)


def _fit(
    base: str, number: int, edits: Sequence[Edit], frozen_headings: tuple[str, ...]
) -> _Fitted | Refusal:
    edit = edits[number]
    patched = _apply(base, [edit], frozen_headings)
    (report,) = patched.reports
    if report.status != "applied":
        giver = next(
            (n for n, other in enumerate(edits) if n != number and edit.target in other.content),
            None,
        )
        if report.status == "no_match" and giver is not None:
            return Refusal("no_match", f"it does not compose: it needs the text of edit {giver}")
        return Refusal(report.status, report.detail)
    core = None if edit.op == "append" else find_target(parse(base, frozen_headings), edit)
    if isinstance(core, Refusal):
        return core
    (splice,) = patched.inverse
    return _Fitted(
        number=number,
        edit=edit,
        lines=core and _whole_lines(base, core),
        added=frozenset(_lines(patched.text) - _lines(base)),
        # an append may need another blank line when a second one stands before it
        growth=len(splice.inserted) - len(splice.removed) + 2 * (core is None),
    )


def _whole_lines(base: str, core: Span) -> Span:
    end = base.find("\n", core.end)
    return Span(base.rfind("\n", 0, core.start) + 1, len(base) if end < 0 else end + 1)


def _lines(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines()} - {""}


def _groups(
    base: str, fitted: Sequence[_Fitted], frozen_headings: tuple[str, ...]
) -> tuple[tuple[int, ...], ...]:
    """Edits that must not be on together, directly or by way of others, as one group each."""
    group_of = {item.number: {item.number} for item in fitted}
    body = [item for item in fitted if not is_writing(item.edit)]
    for one, other in itertools.combinations(body, 2):
        if not _independent(base, one, other, frozen_headings):
            united = group_of[one.number] | group_of[other.number]
            group_of.update(dict.fromkeys(united, united))
    groups = sorted({tuple(sorted(group)) for group in group_of.values()})
    together = [item.edit for item in body if (item.number,) in groups]
    if _apply(base, together, frozen_headings).applied < len(together):
        # Each two of them can be on and all cannot: only one may.
        lines = [(item.number,) for item in fitted if is_writing(item.edit)]
        return tuple(sorted((*lines, tuple(item.number for item in body))))
    return tuple(groups)


def _independent(base: str, one: _Fitted, other: _Fitted, frozen_headings: tuple[str, ...]) -> bool:
    """Whether both can be on: other lines are touched, other things said, and both apply."""
    if one.lines and other.lines and one.lines.meets(other.lines):
        return False
    if one.added & other.added:
        return False
    return _apply(base, [one.edit, other.edit], frozen_headings).applied == 2
