"""Nodes, their subtitles, and the file in the owner's format. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

import msgspec

from actors.video.builder.cards import Card
from actors.video.builder.segments import Span, Timeline
from actors.video.builder.srt import Cue
from actors.video.tree import Level

__all__ = ["Draft", "drafts", "tree_json"]


class Draft(msgspec.Struct, frozen=True):
    """A node without its card. name: its id without the video's, as frame files are named."""

    name: str
    level: Level
    span: Span
    subtitle: str
    children: tuple[str, ...]


def drafts(timeline: Timeline, cues: Sequence[Cue]) -> tuple[Draft, ...]:
    """All nodes in time order, scenes first, then events, then frames; ids count from 000.

    A cue belongs to the frame that its middle falls into, and to what is above it: each line
    is found once, at the deepest node.
    """
    said: list[list[str]] = [[] for _ in timeline.frames]
    starts = [frame.start_s for frame in timeline.frames]
    for cue in cues:
        middle = min((cue.start_s + cue.end_s) / 2, timeline.duration_s)
        said[max(0, bisect_right(starts, middle) - 1)].append(cue.text)
    scenes, events = [], []
    for number, (span, below) in enumerate(zip(timeline.scenes, timeline.events_of, strict=True)):
        lines = [
            line for event in below for frame in timeline.frames_of[event] for line in said[frame]
        ]
        children = tuple(_name(2, event) for event in below)
        scenes.append(Draft(_name(1, number), 1, span, "\n".join(lines), children))
    for number, (span, below) in enumerate(zip(timeline.events, timeline.frames_of, strict=True)):
        lines = [line for frame in below for line in said[frame]]
        children = tuple(_name(3, frame) for frame in below)
        events.append(Draft(_name(2, number), 2, span, "\n".join(lines), children))
    frames = [
        Draft(_name(3, number), 3, span, "\n".join(lines), ())
        for number, (span, lines) in enumerate(zip(timeline.frames, said, strict=True))
    ]
    return (*scenes, *events, *frames)


def _name(level: Level, number: int) -> str:
    return f"L{level}_{number:03d}"


def tree_json(
    video_id: str, domain: str, duration_s: float, nodes: Sequence[Draft], cards: Mapping[str, Card]
) -> bytes:
    """``tree.json``. cards: by the drafts' names, one for each."""
    data = {
        "videoID": video_id,
        "duration_category": _category(duration_s),
        "duration_seconds": duration_s,
        "domain": domain,
        "nodes": {
            f"{video_id}_{node.name}": {
                "level": node.level,
                "time_range": [node.span.start_s, node.span.end_s],
                "card": cards[node.name],
                "subtitle": node.subtitle,
                "children_ids": [f"{video_id}_{child}" for child in node.children],
            }
            for node in nodes
        },
    }
    return msgspec.json.format(msgspec.json.encode(data), indent=1) + b"\n"


def _category(duration_s: float) -> str:
    """Video-MME's words; its groups lie at 11-131, 251-1092 and 1795-3579 seconds."""
    if duration_s < 200:
        return "short"
    return "medium" if duration_s < 1500 else "long"
