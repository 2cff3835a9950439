"""A small tree in the owner's format, made in code."""

from __future__ import annotations

import json

__all__ = ["VIDEO", "sample", "sample_bytes"]

VIDEO = "-kitchen_01"
JsonObject = dict[str, object]


def _node(
    level: int, start: float, end: float, summary: str, subtitle: str, children: list[str]
) -> JsonObject:
    field = {1: "scene_summary", 2: "event_description", 3: "frame_summary"}[level]
    return {
        "level": level,
        "time_range": [start, end],
        "card": {"topic_keywords": ["cooking", f"level {level}"], field: summary},
        "subtitle": subtitle,
        "children_ids": children,
    }


def sample() -> JsonObject:
    """Two scenes; the first with two events, one of them with a key frame."""
    font = '<font color="white" size=".72c">{}</font>'
    return {
        "videoID": VIDEO,
        "duration_category": "short",
        "duration_seconds": 90.5,
        "domain": "Life Record",
        "nodes": {
            f"{VIDEO}_L1_000": _node(
                1,
                0.0,
                60.0,
                "A cook prepares dough in a kitchen.",
                font.format("Now knead the dough.") + "\n" + font.format("Add &amp; mix salt."),
                [f"{VIDEO}_L2_000", f"{VIDEO}_L2_001"],
            ),
            f"{VIDEO}_L1_001": _node(
                1, 60.0, 90.5, "Guests eat bread in a garden.", "How tasty this bread is!", []
            ),
            f"{VIDEO}_L2_000": _node(
                2,
                0.0,
                30.0,
                "Flour is poured into a bowl.",
                font.format("Now knead the dough."),
                [f"{VIDEO}_L3_000"],
            ),
            f"{VIDEO}_L2_001": _node(
                2, 30.0, 60.0, "The oven is opened.", font.format("Add &amp; mix salt."), []
            ),
            f"{VIDEO}_L3_000": _node(3, 12.0, 12.0, "A blue bowl on a table.", "", []),
        },
    }


def sample_bytes() -> bytes:
    """The sample as a file's content."""
    return json.dumps(sample()).encode()
