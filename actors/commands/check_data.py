"""Whether the questions, the seed and the video trees can carry a run. Reads only, never raises."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from actors.baseline.seed_db import SeedBaselineError, read_diagnoses, read_predictions
from actors.commands.check_line import Line, fail, fine, warn
from actors.commands.check_seen import seen_by_run
from actors.commands.split_report import fewer_moves
from actors.commands.splitting import Split, describe
from actors.config import ConfigError, agent_of, resolve_path
from actors.dataset.errors import DataError, MissingOutcomeError, SplitError
from actors.dataset.pools import FrozenData, load_frozen
from actors.dataset.questions import Dataset, load_dataset
from actors.dataset.tiers import tiered_outcomes
from actors.evolver.document import validate
from actors.launch import check_world
from actors.launch_places import made_by
from actors.system import read_seed_info, read_seed_package, seed_serves, uses_twin
from actors.video.search import SearchableTree
from actors.video.store import frames_folder, read_tree
from actors.video.tree import TreeError
from actors.workspace.errors import WorkspaceError
from actors.workspace.files import read_json
from actors.workspace.seed import BASELINE, POOLS, SPLIT_MANIFEST, seed_problems
from protocol.documents import PackageTexts
from protocol.seed import SplitManifest
from protocol.settings import Config

__all__ = ["Material", "look_at_data"]

T = TypeVar("T")
_NAMED = 5
_TROUBLE = (
    ConfigError,
    DataError,
    MissingOutcomeError,
    OSError,
    RecursionError,
    SeedBaselineError,
    SplitError,
    TypeError,
    ValueError,
    WorkspaceError,
    sqlite3.Error,
)


class Material(msgspec.Struct, kw_only=True):
    """What could be read of what a run is made of; None: it could not. Filled as it is found.

    folder: with seed.json, the baseline and the documents: a seed, or a workspace. tree: of the
    first diag question. right: in the baseline, by question id. serves: the baseline was answered
    by this run's own agent.
    """

    folder: Path | None = None
    questions: Path | None = None
    trees: Path | None = None
    world: Path | None = None
    dataset: Dataset | None = None
    frozen: FrozenData | None = None
    package: PackageTexts | None = None
    tree: SearchableTree | None = None
    split: Split | None = None
    right: dict[str, bool] = {}
    serves: bool = False


class _Looking:
    """Lines as they come, and what they are made from."""

    def __init__(self, config: Config, source: Path) -> None:
        self.config = config
        self.source = source
        self.lines: list[Line] = []
        self.found = Material()

    def attempt(self, name: str, remedy: str, look: Callable[[], T]) -> T | None:
        """What ``look`` finds; None after its trouble became lines."""
        try:
            return look()
        except WorkspaceError as error:
            self.lines.append(fail(name, f"{error.path}: {error.what}", error.remedy))
        except DataError as error:
            self.lines += [
                fail(name, f"{error.path.name}: {problem.where}: {problem.what}", problem.remedy)
                for problem in error.problems[:_NAMED]
            ]
            self._rest(name, len(error.problems))
        except ConfigError as error:
            self.lines += [fail(name, problem, remedy) for problem in error.problems]
        except _TROUBLE as error:
            self.lines.append(fail(name, str(error) or type(error).__name__, remedy))
        return None

    def _rest(self, name: str, count: int) -> None:
        if count > _NAMED:
            self.lines.append(fail(name, f"and {count - _NAMED} more problems of that file", ""))


def look_at_data(
    config: Config, source: Path, workspace: Path | None
) -> tuple[list[Line], Material]:
    """Every line about data, seed and trees. workspace: of a run that would go on; None: fresh."""
    looking = _Looking(config, source)
    _places(looking, workspace)
    _questions(looking)
    _seed(looking, fresh=workspace is None)
    _pools(looking)
    _trees(looking)
    _world(looking)
    return looking.lines, looking.found


def _places(looking: _Looking, workspace: Path | None) -> None:
    data, found = looking.config.data, looking.found

    def place(name: str, key: str, text: str) -> Path | None:
        remedy = f"mend {key} in {looking.source}"
        if made := made_by(key):
            remedy += f", or {made}"
        return looking.attempt(name, remedy, lambda: resolve_path(text, looking.source))

    found.questions = place("data", "data.questions", data.questions)
    found.trees = place("trees", "data.trees", data.trees)
    found.folder = workspace or place("seed", "data.seed", data.seed)
    if uses_twin(looking.config):
        found.world = place("world", "twin.world", looking.config.twin.world)


def _questions(looking: _Looking) -> None:
    data, found, path = looking.config.data, looking.found, looking.found.questions
    if path is None:
        return

    def load() -> Dataset:
        exclude = None if data.exclude is None else resolve_path(data.exclude, looking.source)
        return load_dataset(path, exclude, duration=data.duration)

    found.dataset = looking.attempt("data", f"mend {path}", load)
    if found.dataset is None:
        return
    questions = found.dataset.questions
    classes = {question.task_type for question in questions}
    videos = {question.video_id for question in questions}
    left_out = f", {len(found.dataset.excluded)} left out" if found.dataset.excluded else ""
    only = f" of duration {data.duration}" if data.duration else ""
    looking.lines.append(
        fine(
            "data",
            f"{path.name}: {len(questions)} questions{only}, {len(videos)} videos, "
            f"{len(classes)} classes{left_out}",
        )
    )


def _seed(looking: _Looking, *, fresh: bool) -> None:
    found, folder = looking.found, looking.found.folder
    remedy = "restore the seed, or make it anew with `bin/trm seed`"
    if folder is None:
        return
    if fresh:
        problems = looking.attempt("seed", remedy, lambda: seed_problems(folder))
        looking.lines += [fail("seed", f"{p.path}: {p.what}", p.remedy) for p in problems or ()]
        if problems != ():
            return
    found.package = looking.attempt("seed", remedy, lambda: read_seed_package(folder))
    serves = looking.attempt("seed", remedy, lambda: seed_serves(looking.config, folder))
    if found.package is None or serves is None:
        return
    found.serves = serves
    damaged = [
        fail("seed", f"skill {skill.task_type}: {problem}", "mend the document, then seal it anew")
        for skill in found.package.skills
        for problem in validate(skill.text)
    ]
    looking.lines += damaged or [_baseline_line(looking.config, folder, serves=serves)]


def _baseline_line(config: Config, folder: Path, *, serves: bool) -> Line:
    info = read_seed_info(folder)
    told = f"{info.name}: whole, baseline {info.baseline_run_id}"
    if serves:
        first = ", and is the first draw of v1" if config.gate.seed_draw else ""
        return fine("seed", f"{told} by this run's own agent: serves for test{first}")
    return warn(
        "seed",
        f"{told} by another agent, so it serves for the split only (seed: {info.agent}; run: "
        f"{agent_of(config)})",
        "nothing: the run draws every baseline itself; or make a seed of this agent's own with "
        "`bin/trm seed --from-scratch`",
    )


def _pools(looking: _Looking) -> None:
    found, folder, dataset = looking.found, looking.found.folder, looking.found.dataset
    if folder is None or dataset is None or found.package is None:
        return
    remedy = "split anew with `bin/trm split`"
    found.frozen = looking.attempt("pools", remedy, lambda: load_frozen(folder, dataset.questions))
    if found.frozen is None:
        return
    pools = found.frozen
    counts = f"diag {len(pools.diag)}, val {len(pools.val)}, test {len(pools.test)} questions"
    found.split = looking.attempt("pools", remedy, lambda: _described(looking, folder, dataset))
    if found.split is None:
        return
    classes = found.split.data.classes
    trained = [count.task_type for count in classes if count.trainable]
    if not trained:
        looking.lines += [
            fail(
                "pools",
                f"{count.task_type} does not train: {count.reason}",
                _to_train(found.split, count.task_type),
            )
            for count in classes
        ]
        return
    own = {skill.task_type for skill in found.package.skills}
    looking.lines += [
        fail("pools", f"{name} would train, but has no skill", "add its skills/v1/<class>.md")
        for name in trained
        if name not in own
    ]
    dropped = [count.task_type for count in classes if not count.trainable]
    looking.lines.append(fine("pools", f"{counts}; {len(trained)} of {len(classes)} classes train"))
    if dropped:
        told = f"not trained, for reasons that the table tells: {', '.join(dropped)}"
        fewer = fewer_moves(found.split.facts, dropped)
        mend = f"nothing, or split more videos{'' if fewer is None else f'. {fewer}'}"
        looking.lines.append(warn("pools", told, f"{mend}; test keeps their questions"))


def _to_train(split: Split, task_type: str) -> str:
    """What would let the class train."""
    fewer = fewer_moves(split.facts, [task_type])
    return "more videos" if fewer is None else f"{fewer}, or more videos"


def _described(looking: _Looking, folder: Path, dataset: Dataset) -> Split:
    predictions = read_predictions(folder / BASELINE)
    looking.found.right = {row.question_id: row.right for row in predictions}
    tiered = tiered_outcomes(dataset.questions, predictions, read_diagnoses(folder / BASELINE))
    manifest = read_json(folder / SPLIT_MANIFEST, SplitManifest, "split anew")
    split = describe(dataset, tiered, (folder / POOLS).read_bytes(), manifest, looking.config)
    return seen_by_run(split, folder)


def _trees(looking: _Looking) -> None:
    found, folder = looking.found, looking.found.trees
    if folder is None or found.dataset is None:
        return
    first = found.frozen.diag[0].video_id if found.frozen and found.frozen.diag else None
    ids = sorted({question.video_id for question in found.dataset.questions})
    problems, blind, warnings = [], [], 0
    for video_id in ids:
        try:
            tree = read_tree(folder, video_id)
        except TreeError as error:
            problems.append(str(error))
            continue
        if video_id == first:
            found.tree = tree
        warnings += len(tree.tree.warnings)
        if looking.config.agent.vision != "none" and not frames_folder(folder, video_id).is_dir():
            blind.append(video_id)
    looking.lines += [
        fail("trees", problem, "make the tree anew with `bin/trm tree`, or restore the file")
        for problem in problems[:_NAMED]
    ]
    if len(problems) > _NAMED:
        looking.lines.append(
            fail("trees", f"and {len(problems) - _NAMED} more trees", "see `bin/trm tree --help`")
        )
    if not problems:
        odd = f", {warnings} oddities in them" if warnings else ""
        looking.lines.append(fine("trees", f"all {len(ids)} videos have a readable tree{odd}"))
    if blind:
        looking.lines.append(
            warn(
                "trees",
                f"agent.vision: {len(blind)} videos have no frames, such as {_few(blind)}",
                "lay pictures beside the trees (`bin/trm tree`): a look at them fails",
            )
        )


def _few(names: Iterable[str]) -> str:
    return ", ".join(list(names)[:3])


def _world(looking: _Looking) -> None:
    world, questions = looking.found.world, looking.found.questions
    if world is None or questions is None or looking.found.dataset is None:
        return
    before = len(looking.lines)
    looking.attempt("world", "mend twin.world", lambda: check_world(world, questions))
    if len(looking.lines) == before:
        looking.lines.append(
            fine(
                "world",
                f"{world.name}: the simulator knows these questions (it is no language model)",
            )
        )
