"""Everything around the made-up long part that a run needs: a planted world, trees, documents.

The simulator can judge these questions; nobody can answer them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import msgspec

from actors.twin.world import Lesson, Planted, World
from protocol.dataset import Question
from protocol.keys import slug
from tests.support.harness_db import draw

__all__ = ["write_documents", "write_trees", "write_world"]


def write_world(path: Path, questions: Iterable[Question]) -> Path:
    """One lesson per class, which six of ten questions need: their failures are skill defects."""
    questions = list(questions)
    lessons = tuple(
        Lesson(
            lesson_id=slug(name),
            task_type=name,
            key=f"the {slug(name)} rule",
            text=f"- Keep the {slug(name)} rule in mind.",
            topic=f"what is special about {name}",
            gain=2.0,
        )
        for name in sorted({question.task_type for question in questions})
    )
    planted = tuple(
        Planted(
            question_id=question.question_id,
            base=0.8,
            needs=(slug(question.task_type),)
            if draw(f"needs/{question.question_id}", 10) < 6
            else (),
        )
        for question in questions
    )
    world = World(name="long", lessons=lessons, traps=(), fillers=(), questions=planted)
    path.write_bytes(msgspec.json.encode(world))
    return path


def write_trees(folder: Path, questions: Iterable[Question]) -> Path:
    """The smallest tree that is one, for every video."""
    folder.mkdir()
    for video_id in sorted({question.video_id for question in questions}):
        nodes = {
            f"{video_id}_L1_000": ([f"{video_id}_L2_000"], "scene_summary", 1, [0.0, 60.0]),
            f"{video_id}_L2_000": ([f"{video_id}_L3_000"], "event_description", 2, [0.0, 60.0]),
            f"{video_id}_L3_000": ([], "frame_summary", 3, [5.0, 5.0]),
        }
        tree = {
            "videoID": video_id,
            "duration_category": "long",
            "duration_seconds": 60.0,
            "domain": "made up",
            "nodes": {
                name: {
                    "level": level,
                    "time_range": time_range,
                    "card": {summary: "somebody is busy"},
                    "subtitle": "",
                    "children_ids": children,
                }
                for name, (children, summary, level, time_range) in nodes.items()
            },
        }
        (folder / f"{video_id}.json").write_text(json.dumps(tree), encoding="utf-8")
    return folder


def write_documents(folder: Path, demo: Path) -> tuple[Path, Path]:
    """One skill for all classes, and the demo's prompts; unsealed."""
    skills, prompts = folder / "skills", folder / "prompts"
    (prompts / "tools").mkdir(parents=True)
    skills.mkdir()
    source = demo / "skills" / "v1" / "_default.md"
    (skills / "_default.md").write_bytes(source.read_bytes())
    for path in sorted((demo / "prompts" / "v1").rglob("*.md")):
        target = prompts / path.relative_to(demo / "prompts" / "v1")
        target.write_bytes(path.read_bytes())
    return skills, prompts
