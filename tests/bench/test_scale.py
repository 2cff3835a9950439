"""The seed of the scale benchmark has the shape that it claims; how fast a run is, is no test."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from actors.commands.splitting import Split
from actors.dataset.pools import load_frozen
from actors.dataset.questions import load_dataset
from actors.twin.catalog import load_catalog
from actors.video.tree import parse_tree
from actors.workspace.seed import open_seed
from protocol.keys import slug
from tests.bench.scale import Figures, table
from tests.bench.scale_seed import DEMO, Shape, build, copies, long_tree
from tests.support import long_part

SMALL = Shape(times=2, videos=45, n_trainval=60, n_test=30, val_wrong_min=10, parts=2)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Split]:
    """Two copies of 45 videos."""
    folder = tmp_path_factory.mktemp("scale")
    return folder, build(folder, SMALL)[1]


def test_whole_shape_is_that_of_the_long_part() -> None:
    """Every class as often as there are copies, and no id twice."""
    assert copies(Shape()) == long_part.questions()
    questions = copies(Shape(times=3))
    asked = Counter(question.task_type for question in questions)
    assert asked == {name: 3 * count for name, (count, _) in long_part.CLASSES.items()}
    assert len({question.question_id for question in questions}) == 2700
    assert len({question.video_id for question in questions}) == 900


def test_the_seed_is_one_and_the_simulator_knows_every_question(built: tuple[Path, Split]) -> None:
    """Opened and verified as a run does; lessons, traps and fillers for every class."""
    folder, split = built
    assert open_seed(folder / "seed").without_baseline == ()
    dataset = load_dataset(folder / "questions.jsonl", None, duration=None)
    frozen = load_frozen(folder / "seed", dataset.questions)
    sizes = [len({q.video_id for q in pool}) for pool in (frozen.diag, frozen.val, frozen.test)]
    assert (sizes[0] + sizes[1], sizes[2]) == (60, 30)
    catalog = load_catalog(folder / "world.json", folder / "questions.jsonl")
    assert len(catalog.entries) == 270
    for name in {question.task_type for question in dataset.questions}:
        of_class = (catalog.lessons_of(name), catalog.traps_of(name), catalog.fillers_of(name))
        assert all(of_class)
        assert (folder / "seed" / "skills" / "v1" / f"{slug(name)}.md").exists()
    assert split.facts.undiagnosed == ()


def test_p0_3_preflight_drops_the_classes_that_are_too_small(built: tuple[Path, Split]) -> None:
    """Exactly those with fewer than 8 units in diag or 2 questions in val; some stay."""
    _, split = built
    dropped = {facts.count.task_type for facts in split.facts.classes if facts.ladder is None}
    assert dropped == {
        facts.count.task_type
        for facts in split.facts.classes
        if facts.count.n_units < 8 or facts.count.n_val < 2
    }
    assert "Attribute Perception" in dropped
    assert {"Object Reasoning", "Action Reasoning"}.isdisjoint(dropped)


def test_the_baseline_is_drawn_from_the_planted_accuracy(built: tuple[Path, Split]) -> None:
    """Some half of the answers are right, so that there is something to learn and to lose."""
    _, split = built
    diag, val, _ = split.facts.pools
    assert diag.wrong is not None
    assert val.wrong is not None
    wrong = (diag.wrong + val.wrong) / (diag.questions + val.questions)
    assert 0.3 < wrong < 0.7


def test_trees_are_laid_end_to_end() -> None:
    """Every node as often as there are parts, one after the other, and nothing looks odd."""
    path = min(DEMO.glob("trees/*.json"))
    short = parse_tree(path.read_bytes(), "short")
    long = parse_tree(
        msgspec.json.encode(long_tree("c01-601", msgspec.json.decode(path.read_bytes()), 8)), "long"
    )
    assert len(long.nodes) == 8 * len(short.nodes)
    assert long.warnings == short.warnings
    assert long.duration_s == 8 * short.duration_s
    assert long.video_id == "c01-601"
    assert Counter(node.level for node in long.nodes.values()) == {
        level: 8 * count
        for level, count in Counter(node.level for node in short.nodes.values()).items()
    }


def test_the_table_says_what_was_measured() -> None:
    """Rates and ratios from the figures."""
    found = Figures(
        times=1, epochs=2, concurrency=256, chunk_delay_s=0.0, questions=900, calls=1000, cached=5,
        wall=20.0, trainer_cpu=4.0, twin_cpu=1.0, twin_own=1.0, in_flight=2.0, lag_p99=3.0,
        lag_max=9.0, peak=150.0, per_epoch=(100.0, 101.0), run_db=1.0, cache_db=2.0,
    )  # fmt: skip
    said = dict(line.split("  ", 1) for line in table(found))
    assert said["calls per second"].strip() == "50"
    assert said["CPU per call, trainer"].strip() == "4.00 ms"
    assert said["wall/twin"].strip() == "20.00"
    assert said["memory after each epoch"].strip() == "100, 101 MiB"
