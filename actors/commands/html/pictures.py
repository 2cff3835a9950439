"""Rows of a picture whose words are HTML and whose bars are SVG, so that they fit any width. Pure.

The bars stand in a box of 1000 by 20 that is stretched; strokes keep their width.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from actors.commands.html.charts import Scale
from actors.commands.html.markup import Child, Markup, el
from actors.commands.html.story import Diagnosed
from actors.commands.html.words import CHECKS

__all__ = ["CAUSES", "bar", "gain_row", "parts_bar", "waterfall"]

CAUSES = {
    "defect": "the skill says nothing, or following it fails too",
    "lapse": "a rule that would have helped was not followed",
    "uncertain": "the judge will not say",
    "silent": "the judge failed, or its reply could not be used",
}
_WIDE, _HIGH, _TOP = 1000, 20, 4


def _box(*parts: Child, told: str, look: str = "bar") -> Markup:
    return el(
        f"svg.{look}",
        el("title", told),
        *parts,
        viewBox=f"0 0 {_WIDE} {_HIGH}",
        preserveAspectRatio="none",
        role="img",
    )


def bar(share: float, look: str, told: str) -> Markup:
    """A bar of a share in [0, 1]."""
    width = round(max(0.0, min(1.0, share)) * _WIDE, 1)
    return _box(el(f"rect.{look}", x=0, y=3, width=width, height=14, rx=0), told=told)


def parts_bar(
    parts: Sequence[tuple[str, int]], start: int, whole: int, told: str, *, leads_on: bool = True
) -> Markup:
    """Parts side by side, beginning at ``start`` of ``whole``; a hair leads down to them.

    leads_on: another leads from their end to what comes below.
    """
    x = Scale(0, max(1, whole), 0, _WIDE)
    ends = start + sum(number for _, number in parts)
    drawn: list[Child] = []
    if 0 < start < whole:
        drawn.append(el("line", x1=x(start), x2=x(start), y1=0, y2=_TOP if parts else _HIGH))
    at = start
    for look, number in parts:
        width = round(x(at + number) - x(at), 1)
        drawn.append(el(f"rect.{look}", x=x(at), y=_TOP, width=width, height=_HIGH - 2 * _TOP))
        at += number
    if leads_on and parts and ends < whole:
        drawn.append(el("line", x1=x(ends), x2=x(ends), y1=_HIGH - _TOP, y2=_HIGH))
    return _box(drawn, told=told)


def gain_row(gain: float, low: float, high: float, reach: float, told: str) -> Markup:
    """A gain in [-1, 1] as a dot with its interval, around the line of no gain."""
    x = Scale(-reach, reach, 0, _WIDE)
    sure = "up" if low > 0 else "down" if high < 0 else "even"
    return _box(
        el("line.zero", x1=x(0), x2=x(0), y1=0, y2=_HIGH),
        el("line.span", x1=x(max(low, -reach)), x2=x(min(high, reach)), y1=10, y2=10),
        el("path.dot", d=f"M{x(gain):g} 10h0"),
        told=told,
        look=f"gain.{sure}",
    )


def waterfall(diagnosed: Sequence[Diagnosed]) -> Markup:
    """Every check takes its share of the wrong answers; what remains falls to the next one."""
    whole = sum(one.number for one in diagnosed)
    told = f"{whole} wrong answers were diagnosed"
    rows: list[Child] = [
        _row("Wrong answers", "", whole, parts_bar([("all", whole)], 0, whole, told))
    ]
    start = 0
    known = [*CHECKS, *sorted({one.error_type for one in diagnosed} - CHECKS.keys())]
    for kind in known:
        own = [one for one in diagnosed if one.error_type == kind]
        number = sum(one.number for one in own)
        name, meaning = CHECKS.get(kind, (kind, ""))
        below = _subtypes(own, start, whole)
        drawn = _parts(name, own, start, whole, leads_on=not below)
        rows += [_row(name, meaning, number, drawn), *below]
        start += number
    return el("div.waterfall", rows, role="list")


def _parts(
    name: str, own: Sequence[Diagnosed], start: int, whole: int, *, leads_on: bool = True
) -> Markup:
    counted = Counter[str]()
    for one in own:
        counted[one.cause] += one.number
    parts = [(cause, counted[cause]) for cause in CAUSES if counted[cause]]
    told = ", ".join(f"{cause} {number}" for cause, number in parts) or "none"
    return parts_bar(parts, start, whole, f"{name}: {told}", leads_on=leads_on)


def _subtypes(own: Sequence[Diagnosed], start: int, whole: int) -> list[Child]:
    by_subtype: Mapping[str, int] = Counter(
        {name: sum(o.number for o in own if o.subtype == name) for name in {o.subtype for o in own}}
    )
    if set(by_subtype) <= {""}:
        return []
    rows: list[Child] = []
    for subtype in sorted(by_subtype, key=lambda name: (-by_subtype[name], name)):
        name = subtype.replace("_", " ") or "no subtype"
        these = [one for one in own if one.subtype == subtype]
        number = by_subtype[subtype]
        rows.append(_row(name, "", number, _parts(name, these, start, whole), "sub"))
        start += number
    return rows


def _row(name: str, meaning: str, number: int, drawn: Markup, look: str = "main") -> Markup:
    return el(
        f"div.fall.{look}",
        el("span.what", el("b", name), el("small", meaning) if meaning else None),
        drawn,
        el("span.number", number),
        role="listitem",
    )
