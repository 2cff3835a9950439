"""The picture of an edit's won minus lost pairs, beside what a coin would do. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from actors.commands.html.charts import Scale
from actors.commands.html.markup import Child, Markup, el
from actors.commands.html.words import count
from actors.factorial_view import EditView
from actors.gate.factorial.binomial import tails

__all__ = ["balance_path", "needed"]

WIDTH, HEIGHT = 300, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 12, 12, 24
_SLACK = 1e-12  # the cut is stored as a float
_COIN = 1.96  # standard deviations that hold a coin 95 times in 100, at any one pair
_POINTS = 160


def needed(discordant: int, cut: float | None) -> int | None:
    """The smallest W - L of so many discordant pairs with p <= cut; None: there is none."""
    if cut is None:
        return None
    allowed = cut * (1 + _SLACK) * (1 << discordant)
    few = sum(value <= allowed for value in tails(discordant))
    return None if few == 0 else 2 * (discordant - few + 1) - discordant


def balance_path(one: EditView, phases: Sequence[int], cut: float | None) -> Markup:
    """W - L over the class's pairs.

    phases: the class's pairs of each phase. cut: the p-value up to which edits were adopted, None:
    none was, or this one could not be.
    """
    whole = max(1, sum(phases))
    last = one.path[-1] if one.path else (0, 0, 0)
    goal = needed(last[2], cut)
    reach = max(
        4.0,
        _COIN * math.sqrt(last[2]) * 1.08,
        max((abs(balance) for _, balance, _ in one.path), default=0) * 1.08,
        0 if goal is None else abs(goal) * 1.12,
    )
    x = Scale(0, whole, _LEFT, WIDTH - _RIGHT)
    y = Scale(-reach, reach, HEIGHT - _BOTTOM, _TOP)
    look = {"adopted": "accept", "dropped": "reject"}.get(one.row.state, "none")
    return el(
        f"svg.chart.path.balance.{look}",
        el("title", _told(one, goal)),
        _band(one, x, y),
        _phases(phases, x),
        el("line.par", x1=x(0), x2=x(whole), y1=y(0), y2=y(0)),
        [_words(_LEFT - 5, y(value) + 4, f"{value:+d}", "end") for value in _ticks(reach)],
        _words(_LEFT - 5, y(0) + 4, "0", "end"),
        _goal(goal, last[1] < 0, x, y),
        el("polyline.walk", points=_line(one, x, y)),
        el("circle.end", cx=x(last[0]), cy=y(last[1]), r=4.0) if one.path else None,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
    )


def _told(one: EditView, goal: int | None) -> str:
    row = one.row
    told = f"{row.edit_id}: {count(row.wins or 0, 'pair')} won, {row.losses} lost of {row.pairs}"
    return told if goal is None else f"{told}; {goal:+d} was needed"


def _ticks(reach: float) -> tuple[int, int]:
    step = max(1, round(reach * 0.75))
    return step, -step


def _band(one: EditView, x: Scale, y: Scale) -> Markup:
    """Where a coin stays 95 times in 100, at any one pair."""
    every = max(1, len(one.path) // _POINTS)
    shown = [(0, 0, 0), *one.path[::every], *one.path[-1:]]
    edge = [(pair, _COIN * math.sqrt(seen)) for pair, _, seen in shown]
    around = [*edge, *((pair, -high) for pair, high in reversed(edge))]
    return el("polygon.coin", points=" ".join(f"{x(pair):g},{y(at):g}" for pair, at in around))


def _line(one: EditView, x: Scale, y: Scale) -> str:
    """Only where it moves, from the pair before the edit's first."""
    first = one.path[0][0] - 1 if one.path else 0
    points, before = [(first, 0)], 0
    for pair, balance, _ in one.path:
        if balance != before:
            points += [(pair - 1, before), (pair, balance)]
            before = balance
    if one.path:
        points.append((one.path[-1][0], before))
    return " ".join(f"{x(pair):g},{y(at):g}" for pair, at in points)


def _phases(phases: Sequence[int], x: Scale) -> list[Child]:
    """A hair at the end of each phase, and its name where there is room."""
    drawn: list[Child] = []
    before = 0
    for number, pairs in enumerate(phases, start=1):
        is_last = number == len(phases)
        middle = (x(before) + x(before + pairs)) / 2
        room = x(before + pairs) - x(before)
        name = "certification" if is_last else f"e{number}"
        if room >= (70 if is_last else 18):
            drawn.append(_words(middle, HEIGHT - 8, name, "middle"))
        before += pairs
        if not is_last:
            at = x(before)
            drawn.append(el("line.grid", x1=at, x2=at, y1=_TOP, y2=HEIGHT - _BOTTOM))
    return drawn


def _goal(goal: int | None, falls: bool, x: Scale, y: Scale) -> list[Markup]:
    """The level at the end from which on it was adopted; its words stand clear of the path."""
    if goal is None:
        return []
    at = y(goal)
    place = _TOP + 4 if falls else HEIGHT - _BOTTOM - 4
    return [
        el("line.threshold", x1=x.start, x2=x.end, y1=at, y2=at),
        _words(x.end, place, f"adopted from {goal:+d}", "end", "axis.reach"),
    ]


def _words(x: float, y: float, text: str, anchor: str, look: str = "axis") -> Markup:
    return el(f"text.{look}", text.replace("-", "\N{MINUS SIGN}"), x=x, y=y, text_anchor=anchor)
