"""A seed in the shape of Video-MME's long part, planted, for measuring whole runs.

Questions, videos and classes are those of ``tests.support.long_part``, as often as is asked for;
trees are the demo's, laid end to end until they are as large as a long video's. Everything is a
function of the number of copies. Nobody can answer these questions: the simulator decides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from actors.commands.seed_parts import complete_seed
from actors.commands.splitting import Split, make_split
from actors.config import ROOT, agent_of, load_config
from actors.dataset.fingerprint import question_fingerprint
from actors.dataset.questions import load_dataset
from actors.twin.world import Filler, Planted, Trap, World, load_world
from actors.workspace.baseline_db import make_baseline_db
from actors.workspace.seed import BASELINE
from protocol.dataset import Question
from protocol.keys import slug
from protocol.seed import BaselineDiagnosis, BaselinePrediction, SplitParameters
from tests.support import long_part, question_files
from tests.support.harness_db import draw
from tests.support.long_world import write_world

__all__ = ["RUN_ID", "Shape", "build", "copies", "long_tree", "plant"]

DEMO = ROOT / "seeds" / "demo"
RUN_ID = "scale-baseline"
PARTS = 8
"""Demo trees per long video: some 160 nodes, 40 minutes."""

_PLAIN, _NEEDY, _GAIN, _HARM = 1.6, -1.0, 2.6, 1.0  # logits
_NODE = re.compile(r"_(L\d)_(\d+)$")


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """How much of it. videos: of each copy of the long part; None: all 300.

    n_trainval, n_test: videos of the split, all copies together.
    """

    times: int = 1
    videos: int | None = None
    n_trainval: int = 100
    n_test: int = 200
    val_wrong_min: int = 20
    parts: int = PARTS


def copies(shape: Shape) -> tuple[Question, ...]:
    """The questions: the long part itself, then copies of it with ids of their own."""
    kept = sorted({question.video_id for question in long_part.questions()})[: shape.videos]
    members = [question for question in long_part.questions() if question.video_id in kept]
    return tuple(
        question if copy == 0 else _renamed(question, f"c{copy:02d}")
        for copy in range(shape.times)
        for question in members
    )


def _renamed(question: Question, copy: str) -> Question:
    return msgspec.structs.replace(
        question,
        question_id=f"{copy}-{question.question_id}",
        video_id=f"{copy}-{question.video_id}",
    )


def plant(path: Path, questions: Sequence[Question]) -> World:
    """``write_world`` with fillers and traps beside its lessons, and questions that hang on them.

    Three of five questions are mostly lost without their class's lesson, so that edits help,
    harm and do nothing.
    """
    world = load_world(write_world(path, questions).read_bytes())
    classes = sorted({question.task_type for question in questions})
    fillers = tuple(
        Filler(task_type=name, text=f"- Say {word} what the {slug(name)} question is about.")
        for name in classes
        for word in ("first", "briefly", "once")
    )
    traps = tuple(
        Trap(
            trap_id=f"{slug(name)}/{word}",
            task_type=name,
            key=f"the {word} {slug(name)} guess",
            text=f"- Trust the {word} {slug(name)} guess.",
            harm=_HARM,
        )
        for name in classes
        for word in ("quick", "loud")
    )
    world = msgspec.structs.replace(
        world,
        lessons=tuple(msgspec.structs.replace(one, gain=_GAIN) for one in world.lessons),
        traps=traps,
        fillers=fillers,
        questions=tuple(
            msgspec.structs.replace(one, base=_NEEDY if one.needs else _PLAIN)
            for one in world.questions
        ),
    )
    path.write_bytes(msgspec.json.encode(world))
    return world


def long_tree(video_id: str, tree: Mapping[str, object], parts: int) -> dict[str, object]:
    """A demo tree, laid end to end ``parts`` times, under another video's name.

    tree: as it stands in its file. Node ids keep their level and are counted through.
    """
    nodes = msgspec.convert(tree["nodes"], dict[str, dict[str, object]])
    length = msgspec.convert(tree["duration_seconds"], float)
    sizes: dict[str, int] = {}
    for name in nodes:
        level = _level(name)[0]
        sizes[level] = sizes.get(level, 0) + 1

    def renamed(name: str, part: int) -> str:
        level, number = _level(name)
        return f"{video_id}_{level}_{number + part * sizes[level]:03d}"

    made: dict[str, object] = {}
    for part in range(parts):
        for name, node in nodes.items():
            start, end = msgspec.convert(node["time_range"], tuple[float, float])
            children = msgspec.convert(node["children_ids"], list[str])
            made[renamed(name, part)] = node | {
                "time_range": [start + part * length, end + part * length],
                "children_ids": [renamed(child, part) for child in children],
            }
    return {
        **tree,
        "videoID": video_id,
        "duration_category": "long",
        "duration_seconds": parts * length,
        "nodes": made,
    }


def _level(name: str) -> tuple[str, int]:
    found = _NODE.search(name)
    assert found is not None, name
    return found[1], int(found[2])


def build(folder: Path, shape: Shape, settings: Sequence[str] = ()) -> tuple[Path, Split]:
    """Write everything that a run needs into ``folder``; its configuration and the split.

    settings: ``KEY=VALUE`` as for ``--set``, with which the run will be started.
    """
    questions = copies(shape)
    path = question_files.write_jsonl(folder, questions)
    world = plant(folder / "world.json", questions)
    (folder / "trees").mkdir()
    for name, tree in _trees(questions, shape.parts):
        (folder / "trees" / f"{name}.json").write_bytes(tree)
    _documents(folder, sorted({question.task_type for question in questions}))
    config_path = folder / "scale.yaml"
    config_path.write_text(
        f"run: {{name: scale}}\n"
        f"data: {{seed: seed, questions: {path.name}, trees: trees}}\n"
        f"twin: {{world: world.json}}\n",
        encoding="utf-8",
    )
    config = load_config(config_path, list(settings))
    predictions, diagnoses = _answers(questions, world)
    dataset = load_dataset(path, None, duration=None)
    split = make_split(
        dataset,
        RUN_ID,
        predictions,
        diagnoses,
        SplitParameters(
            seed=20260716,
            n_trainval=shape.n_trainval,
            n_test=shape.n_test,
            val_ratio=0.4,
            val_wrong_min=shape.val_wrong_min,
        ),
        config,
    )
    make_baseline_db(folder / BASELINE, RUN_ID, predictions, diagnoses)
    complete_seed(
        folder / "seed",
        "scale",
        run_id=RUN_ID,
        baseline_db=folder / BASELINE,
        pools_json=split.pools_json,
        manifest=split.manifest,
        questions=dataset.questions,
        skills_dir=folder / "skills",
        prompts_dir=DEMO / "prompts" / "v1",
        subtitles=True,
        agent=agent_of(config),
        tool_version="scale",
        force=False,
    )
    return config_path, split


def _trees(questions: Iterable[Question], parts: int) -> Iterator[tuple[str, bytes]]:
    sources = [msgspec.json.decode(path.read_bytes()) for path in sorted(DEMO.glob("trees/*.json"))]
    for video_id in sorted({question.video_id for question in questions}):
        tree = sources[draw(f"tree/{video_id}", len(sources))]
        yield video_id, msgspec.json.encode(long_tree(video_id, tree, parts))


def _documents(folder: Path, classes: Iterable[str]) -> None:
    """``_default`` and a copy of it for every class, with front matter of its own."""
    text = (DEMO / "skills" / "v1" / "_default.md").read_text(encoding="utf-8")
    (folder / "skills").mkdir()
    (folder / "skills" / "_default.md").write_text(text, encoding="utf-8")
    for name in classes:
        own = text.replace("name: default\n", f"name: {slug(name)}\n", 1)
        own = own.replace("task_type: _default\n", f"task_type: {name}\n", 1)
        (folder / "skills" / f"{slug(name)}.md").write_text(own, encoding="utf-8")


def _answers(
    questions: Iterable[Question], world: World
) -> tuple[list[BaselinePrediction], list[BaselineDiagnosis]]:
    """What the seed's package answers, drawn from the planted accuracy, and why it errs."""
    planted: dict[str, Planted] = {one.question_id: one for one in world.questions}
    predictions, diagnoses = [], []
    for question in questions:
        name = question.question_id
        truth = planted[name]
        accuracy = 1.0 / (1.0 + math.exp(-truth.base))
        right = draw(f"baseline/{name}", 10_000) < 10_000 * accuracy
        shift = 0 if right else 1 + draw(f"which/{name}", 3)
        predictions.append(
            BaselinePrediction(
                question_id=name,
                video_id=question.video_id,
                task_type=question.task_type,
                letter="ABCD"[("ABCD".index(question.answer) + shift) % 4],
                right=right,
                confidence=0.8,
            )
        )
        if right:
            continue
        defect = bool(truth.needs) and draw(f"cause/{name}", 10) < 9
        diagnoses.append(
            BaselineDiagnosis(
                fingerprint=question_fingerprint(question),
                question_id=name,
                error_type="reasoning_failure",
                cause="defect" if defect else "lapse",
                degraded=False,
                finding="the rule of the class was not followed",
            )
        )
    return predictions, diagnoses
