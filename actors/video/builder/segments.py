"""Dividing the time of a video into scenes, events and key frames. Pure.

The three levels fill the video without gap or overlap: every key frame lies inside its event,
every event inside its scene. Boundaries are whole milliseconds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from actors.video.builder.cuts import Cut

__all__ = ["Segments", "Span", "Timeline", "divide"]

Segments = Literal["scenes", "uniform"]
_LEAST_FRAME_S = 1.0
"""Key frames stand for at least this much: two of a shorter event would show the same."""


class Span(msgspec.Struct, frozen=True):
    """From ``start_s`` up to ``end_s``, in seconds."""

    start_s: float
    end_s: float

    @property
    def middle_s(self) -> float:
        """Halfway."""
        return (self.start_s + self.end_s) / 2


class Timeline(msgspec.Struct, frozen=True):
    """The levels. scenes: of each, its events; events: of each, its frames (positions)."""

    duration_s: float
    scenes: tuple[Span, ...]
    events: tuple[Span, ...]
    frames: tuple[Span, ...]
    events_of: tuple[tuple[int, ...], ...]
    frames_of: tuple[tuple[int, ...], ...]


def divide(
    duration_s: float,
    cuts: Sequence[Cut],
    *,
    scene_s: float,
    event_s: float,
    frames_per_event: int,
) -> Timeline:
    """Events of about ``event_s`` that begin at cuts where there are some, scenes of about
    ``scene_s`` made of whole events, and up to ``frames_per_event`` key frames in each event.

    Without cuts all pieces of a level are of one length. Raises ValueError for sizes that make
    no tree.
    """
    if not 0 < event_s <= scene_s or frames_per_event < 1:
        raise ValueError("wanted: 0 < event length <= scene length, and at least one key frame")
    duration_s = round(duration_s, 3)
    if duration_s <= 0:
        raise ValueError("the video lasts less than a millisecond")
    strengths = {round(cut.time_s, 3): cut.strength for cut in cuts}
    points = _at_cuts(duration_s, event_s, strengths) if cuts else _even(duration_s, event_s)
    events = tuple(Span(start, end) for start, end in pairwise(points))
    firsts = _scene_starts(points, scene_s, strengths)
    frames: list[Span] = []
    frames_of: list[tuple[int, ...]] = []
    for event in events:
        parts = _frames(event, frames_per_event)
        frames_of.append(tuple(range(len(frames), len(frames) + len(parts))))
        frames += parts
    groups = list(pairwise([*firsts, len(events)]))
    return Timeline(
        duration_s=duration_s,
        scenes=tuple(Span(points[first], points[end]) for first, end in groups),
        events=events,
        frames=tuple(frames),
        events_of=tuple(tuple(range(first, end)) for first, end in groups),
        frames_of=tuple(frames_of),
    )


def _even(duration_s: float, size_s: float) -> list[float]:
    pieces = max(1, round(duration_s / size_s))
    points = [round(duration_s * piece / pieces, 3) for piece in range(pieces)]
    return [*dict.fromkeys(points), duration_s]


def _at_cuts(duration_s: float, size_s: float, strengths: dict[float, float]) -> list[float]:
    """Pieces from half to one and a half of the size, each ended by the strongest cut in reach."""
    points = [0.0]
    times = sorted(strengths)
    while duration_s - points[-1] > 1.5 * size_s:
        wanted = points[-1] + size_s
        low, high = points[-1] + size_s / 2, min(wanted, duration_s - size_s) + size_s / 2
        reachable = times[bisect_left(times, low) : bisect_right(times, high)]
        best = max(
            reachable, key=lambda time: (strengths[time], -abs(time - wanted)), default=wanted
        )
        points.append(round(best, 3))
    return [*dict.fromkeys(points), duration_s]


def _scene_starts(
    points: Sequence[float], scene_s: float, strengths: dict[float, float]
) -> list[int]:
    """The first event of each scene: as ``_at_cuts``, but only where events begin."""
    starts = [0]
    last = len(points) - 1
    while points[-1] - points[starts[-1]] > 1.5 * scene_s and starts[-1] + 1 < last:
        begun = points[starts[-1]]
        wanted = begun + scene_s
        high = min(wanted, points[-1] - scene_s) + scene_s / 2
        low = max(starts[-1] + 1, bisect_left(points, begun + scene_s / 2))
        near = range(low, min(last, bisect_right(points, high)))
        if not near:  # events longer than half a scene: the boundary that is nearest
            after = min(last - 1, max(starts[-1] + 1, bisect_left(points, wanted)))
            near = range(max(starts[-1] + 1, after - 1), after + 1)
        starts.append(
            max(
                near,
                key=lambda place: (strengths.get(points[place], 0.0), -abs(points[place] - wanted)),
            )
        )
    return starts


def _frames(event: Span, most: int) -> list[Span]:
    length = event.end_s - event.start_s
    pieces = min(most, max(1, int(length // _LEAST_FRAME_S)))
    points = [round(event.start_s + length * piece / pieces, 3) for piece in range(pieces)]
    return [Span(start, end) for start, end in pairwise([*points, event.end_s])]
