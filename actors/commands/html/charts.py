"""Pictures as inline SVG: the accuracy curves and the path of an e-value. Pure.

Colours stand in the style sheet (``page.css``), so that they follow light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from actors.commands.html.markup import Child, Markup, el
from actors.commands.html.story import Path, Point
from actors.commands.html.words import count, exact

__all__ = ["Curve", "Scale", "curves", "e_path", "ticks_of"]

WIDTH, HEIGHT = 440, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 14, 12, 34


class Scale(msgspec.Struct, frozen=True):
    """Maps a range of values to a range of pixels, straight."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The pixel, to a tenth."""
        span = (self.high - self.low) or 1.0
        return round(self.start + (value - self.low) / span * (self.end - self.start), 1)


class Curve(msgspec.Struct, frozen=True):
    """A line through points, with their intervals.

    look: its class in the style sheet. shift: of the marks in pixels, so that they do not cover
    each other. joined: a line joins the points.
    """

    name: str
    look: str
    points: tuple[Point, ...]
    shift: float = 0.0
    joined: bool = True


def ticks_of(low: float, high: float, step: float = 0.1) -> list[float]:
    """Multiples of the step from the last below to the first above, within [0, 1]."""
    most = round(1 / step)
    first = max(0, min(most - 1, math.floor(low / step + 1e-9)))
    last = max(first + 1, min(most, math.ceil(high / step - 1e-9)))
    return [round(number * step, 10) for number in range(first, last + 1)]


def curves(title: str, seed: Point | None, drawn: Sequence[Curve], last_epoch: int) -> Markup:
    """Accuracy over the epochs; the seed's stands as a level with its interval as a band."""
    points = [point for curve in drawn for point in curve.points]
    points += [] if seed is None else [seed]
    low, high = min(point.low for point in points), max(point.high for point in points)
    ticks = ticks_of(low, high, 0.1 if high - low < 0.6 else 0.2)
    x = Scale(0, max(1, last_epoch), _LEFT + 18, WIDTH - _RIGHT - 22)
    y = Scale(ticks[0], ticks[-1], HEIGHT - _BOTTOM, _TOP)
    every = max(1, math.ceil(last_epoch / 10))
    return el(
        "svg.chart",
        el("title", title),
        _grid(ticks, y),
        [
            _words(x(epoch), HEIGHT - 12, "seed" if epoch == 0 else str(epoch), "middle")
            for epoch in range(0, last_epoch + 1, every)
        ],
        None if seed is None else _level(seed, y),
        [_curve(curve, x, y) for curve in drawn],
        None if seed is None else _mark(seed, Curve("seed", "seed", (seed,)), x, y),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
    )


def _grid(ticks: Sequence[float], y: Scale) -> list[Markup]:
    lines = []
    for tick in ticks:
        lines.append(el("line.grid", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y(tick), y2=y(tick)))
        lines.append(_words(_LEFT - 8, y(tick) + 4, f"{tick:.0%}", "end"))
    return lines


def _words(x: float, y: float, text: str, anchor: str, look: str = "axis") -> Markup:
    return el(f"text.{look}", text, x=x, y=y, text_anchor=anchor)


def _level(seed: Point, y: Scale) -> list[Markup]:
    top, bottom = y(seed.high), y(seed.low)
    width = WIDTH - _RIGHT - _LEFT
    return [
        el("rect.band", x=_LEFT, y=top, width=width, height=round(bottom - top, 1)),
        el("line.level", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y(seed.share), y2=y(seed.share)),
    ]


def _curve(curve: Curve, x: Scale, y: Scale) -> Markup:
    points = sorted(curve.points, key=lambda point: point.epoch)
    line = " ".join(f"{x(p.epoch) + curve.shift:g},{y(p.share):g}" for p in points)
    return el(
        f"g.{curve.look}",
        el("polyline", points=line) if curve.joined and len(points) > 1 else None,
        [_mark(point, curve, x, y) for point in points],
    )


def _mark(point: Point, curve: Curve, x: Scale, y: Scale) -> Markup:
    """A point with its interval; what it is is told when it is pointed at."""
    at, middle = x(point.epoch) + curve.shift, y(point.share)
    when = "seed" if point.epoch == 0 else f"epoch {point.epoch}"
    told = (
        f"{curve.name}, {when}: {point.right} of {point.planned} = {point.share:.1%} "
        f"[{point.low:.1%}, {point.high:.1%}]"
    )
    return el(
        f"g.{curve.look}",
        el("title", told),
        el("line.whisker", x1=at, x2=at, y1=y(point.low), y2=y(point.high)),
        _shape(curve.look, at, middle),
    )


def _shape(look: str, x: float, y: float) -> Markup:
    """The curves' marks differ in form, not in colour alone."""
    if look in ("best-hard", "slow"):
        around = ((x, y - 5.5), (x + 5.5, y), (x, y + 5.5), (x - 5.5, y))
    elif look in ("best-mixed", "fast"):
        around = ((x - 4, y - 4), (x + 4, y - 4), (x + 4, y + 4), (x - 4, y + 4))
    else:
        return el("circle", cx=x, cy=y, r=4.2)
    return el("polygon", points=" ".join(f"{a:g},{b:g}" for a, b in around))


# -- the path of an e-value -------------------------------------------------------------

PATH_WIDTH, PATH_HEIGHT = 300, 165
_DECADES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0)


def e_path(path: Path) -> Markup:
    """The e-value over the units, on a log scale, with the level from which on a look before the
    last accepts, where there is such a look."""
    levels = [1 / path.alpha] if len(path.accepting) > 1 else []
    values = [1.0, *levels, *(max(look.e, 1e-4) for look in path.looks)]
    low, high = math.log10(min(values) / 1.6), math.log10(max(values) * 1.6)
    x = Scale(0, max(1, path.n_units), 44, PATH_WIDTH - 14)
    y = Scale(low, high, PATH_HEIGHT - 34, 12)
    parts: list[Child] = [
        el("title", _path_told(path)),
        _decades(low, high, y),
        [_threshold(level, x, y) for level in levels],
        el("line.par", x1=x(0), x2=x(path.n_units), y1=y(0), y2=y(0)),
        [
            el("line.look", x1=x(n), x2=x(n), y1=PATH_HEIGHT - 34, y2=PATH_HEIGHT - 28)
            for n in path.accepting
        ],
        _words(x(0), PATH_HEIGHT - 14, "0", "middle"),
        _words(x(path.n_units), PATH_HEIGHT - 14, count(path.n_units, "unit"), "end"),
    ]
    line = " ".join(
        f"{x(units):g},{y(math.log10(max(e, 1e-4))):g}"
        for units, e in ((0, 1.0), *((look.units, look.e) for look in path.looks))
    )
    parts.append(el("polyline.walk", points=line))
    for number, look in enumerate(path.looks, start=1):
        last = number == len(path.looks)
        told = (
            f"{count(look.units, 'unit')}: {look.wins} won, {look.losses} lost, {look.ties} tied"
            + (f", {look.missing} missing" if look.missing else "")
            + f"; e = {look.e:.3g}"
        )
        parts.append(
            el(
                "circle.end" if last else "circle.step",
                el("title", told),
                cx=x(look.units),
                cy=y(math.log10(max(look.e, 1e-4))),
                r=5.0 if last else 2.6,
            )
        )
    return el(
        f"svg.chart.path.{path.verdict if path.verdict.isalpha() else 'none'}",
        *parts,
        viewBox=f"0 0 {PATH_WIDTH} {PATH_HEIGHT}",
        role="img",
    )


def _decades(low: float, high: float, y: Scale) -> list[Markup]:
    return [
        _words(36, y(math.log10(value)) + 4, f"{value:g}", "end")
        for value in _DECADES
        if low <= math.log10(value) <= high
    ]


def _threshold(threshold: float, x: Scale, y: Scale) -> list[Markup]:
    at = y(math.log10(threshold))
    return [
        el("line.threshold", x1=x.start, x2=x.end, y1=at, y2=at),
        _words(x.start + 4, at - 5, f"early accept from {threshold:g}", "start", "axis.reach"),
    ]


def _path_told(path: Path) -> str:
    last = path.looks[-1] if path.looks else None
    if last is None:
        return "The e-value: no unit was tested."
    early = f"from {1 / path.alpha:g} on an early tick accepts, " if path.accepting[1:] else ""
    return (
        f"The e-value after {last.units} of {count(path.n_units, 'unit')} is {exact(last.e)}; "
        f"{early}the last tick decides by an exact test."
    )
