"""A finished run's tests as they were made: ladders in their order, and the answers. Reads only.

Nothing of a ladder is stored but its draws and answers: fold and order follow from the seed, and
from what the gate knew when it asked, which is rebuilt epoch by epoch from the rows with the
gate's own functions. Every rebuilt block is held against the questions that were answered in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec

from actors.baseline.snapshot import assemble
from actors.commands.html.words import count
from actors.commands.replay_rules import Asked, StoredTest
from actors.commands.seed_options import OptionError
from actors.commands.workspace_view import workspace_ledger
from actors.config import load_config, resolve_path
from actors.dataset.folds import fold_units
from actors.dataset.pools import FrozenData, load_frozen
from actors.dataset.preflight import preflight, trainable_only
from actors.dataset.questions import load_dataset
from actors.dataset.units import make_units
from actors.gate.decide import Answers
from actors.gate.ema import fold, lookup
from actors.gate.ladder import UncoveredUnit, blind_order, build_ladder
from actors.gate.levels import draws_of
from actors.gate.looks import block_ends
from actors.gate.state import GateState, advance, in_force, known_difficulty
from actors.ledger.reader import Reader
from actors.places import launcher, shown_path
from actors.system import simulated_roles
from actors.twin.truth import class_accuracy
from actors.twin.world import load_world
from protocol.dataset import Unit
from protocol.ledger import Where
from protocol.rows import BaselineRow, DecisionRow, DocumentRow, OutcomeRow
from protocol.settings import Config

__all__ = ["StoredRun", "rebuild", "stored_run", "units_of"]

Snapshot = tuple[str, str, str, int, str]


class StoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """What can be decided again.

    gains: by run_key, the planted gain of the candidate over its class; empty if nothing was
    planted. identical: decisions without a test. lost: run_key -> why a test cannot be rebuilt.
    """

    config: Config
    tests: tuple[StoredTest, ...]
    gains: dict[str, float]
    identical: int
    lost: dict[str, str]


def stored_run(workspace: Path) -> StoredRun:
    """Read a workspace.

    Raises OptionError if it has no gate decision or no answer of one, ConfigError, DataError or
    WorkspaceError for files that cannot be read.
    """
    source = workspace / "config.yaml"
    config = load_config(source)
    frozen = _frozen(workspace, config, source)
    with workspace_ledger(workspace) as reader:
        decisions = reader.rows(DecisionRow)
        tested = [row for row in decisions if row.reason != "identical"]
        _check(workspace, decisions, reader)
        tests, lost = rebuild(config, units_of(config, frozen), tested, reader)
        gains = _gains(config, source, frozen, tested, reader)
    return StoredRun(
        config=config,
        tests=tuple(tests),
        gains=gains,
        identical=len(decisions) - len(tested),
        lost=lost,
    )


def units_of(config: Config, frozen: FrozenData) -> dict[str, list[Unit]]:
    """The diag units of every class that trains."""
    classes = preflight(
        frozen.diag,
        frozen.val,
        frozen.test,
        eval_min_per_class=config.data.eval_min_per_class,
        trainable_min_units=config.data.trainable_min_units,
    )
    found: defaultdict[str, list[Unit]] = defaultdict(list)
    for unit in make_units(trainable_only(frozen.diag, classes)):
        found[unit.task_type].append(unit)
    return dict(found)


def rebuild(
    config: Config,
    units: Mapping[str, Sequence[Unit]],
    decisions: Sequence[DecisionRow],
    reader: Reader,
) -> tuple[list[StoredTest], dict[str, str]]:
    """The tests in the order of epochs and names, and by run_key what cannot be rebuilt."""
    snapshots: defaultdict[Snapshot, list[BaselineRow]] = defaultdict(list)
    for draw in reader.rows(BaselineRow):
        key = (draw.task_type, draw.skill_hash, draw.prompts_version, draw.generation)
        snapshots[*key, draw.confirms].append(draw)
    state = GateState()
    tests: list[StoredTest] = []
    lost: dict[str, str] = {}
    for epoch in range(1, max((row.epoch for row in decisions), default=0) + 1):
        own = [row for row in decisions if row.epoch == epoch]
        outcomes = reader.rows(OutcomeRow, Where(column="run_key", value=f"e{epoch}/*"))
        builder = _Builder(config, units, snapshots, outcomes, state)
        for row in own:
            try:
                tests.append(builder.test(row))
            except _LostError as error:
                lost[row.run_key] = str(error)
        successors, gone = advance(state, own, config.gate.fresh_after)
        retired = [draw for known in gone for draw in snapshots[*known.name, known.generation, ""]]
        known_units, _ = fold(state.units, outcomes, config.gate.ema_decay, retired)
        state = GateState(observed_epoch=epoch, units=known_units, snapshots=successors)
    return tests, lost


class _LostError(Exception):
    """Why a test cannot be rebuilt."""


class _Builder:
    """Rebuilds the tests of one epoch. state: what the gate knew when it began."""

    def __init__(
        self,
        config: Config,
        units: Mapping[str, Sequence[Unit]],
        snapshots: Mapping[Snapshot, Sequence[BaselineRow]],
        outcomes: Sequence[OutcomeRow],
        state: GateState,
    ) -> None:
        self._config = config
        self._units = units
        self._snapshots = snapshots
        self._state = state
        self._answers: defaultdict[str, dict[str, bool | None]] = defaultdict(dict)
        for row in outcomes:
            answer = None if row.outcome == "missing" else row.outcome == "right"
            self._answers[row.run_key][row.question_id] = answer

    def test(self, row: DecisionRow) -> StoredTest:
        """Raises _LostError."""
        ladder = fold_units(
            self._units.get(row.task_type, ()),
            seed=self._config.run.seed,
            epoch=row.epoch,
            design_share=self._config.data.design_share,
            trainable_min_units=self._config.data.trainable_min_units,
        ).ladder
        if len(ladder) != row.n_units:
            raise _LostError(
                f"the ladder had {count(row.n_units, 'unit')} and would have {len(ladder)} by "
                "config.yaml"
            )
        known = in_force(self._state, row.task_type, row.snapshot_hash, row.prompts_version)
        ema = known_difficulty(self._state, known)
        order = blind_order(ladder, self._config.run.seed, row.epoch, ema)
        stages = [self._asked(row, order, "gate", row.generation, "")]
        if f"{row.run_key}/confirm/b0" in self._answers:
            stages.append(self._asked(row, order, "confirm", 0, row.run_key))
        return StoredTest(row=row, stages=tuple(stages))

    def _asked(
        self, row: DecisionRow, order: Sequence[Unit], stage: str, generation: int, confirms: str
    ) -> Asked:
        key = (row.task_type, row.snapshot_hash, row.prompts_version, generation, confirms)
        draws = assemble(
            order, self._snapshots.get(key, ()), draws_of(self._config.gate, len(order))
        )
        if not any(entry.right for entry in draws):
            raise _LostError(f"its baseline ({stage}) is not stored")
        try:
            ladder = build_ladder(order, draws, lookup(self._state.units))
        except UncoveredUnit as error:
            raise _LostError(str(error)) from error
        blocks: list[tuple[Answers, ...]] = []
        for start, end in pairwise((0, *block_ends(len(order)))):
            given = self._answers.get(f"{row.run_key}/{stage}/b{len(blocks)}")
            if given is None:
                break
            blocks.append(_block(order[start:end], given))
        return Asked(ladder=ladder, blocks=tuple(blocks))


def _block(units: Sequence[Unit], given: Mapping[str, bool | None]) -> tuple[Answers, ...]:
    """Raises _LostError if other questions than these were asked."""
    wanted = {question.question_id for unit in units for question in unit.questions}
    strange = sorted(given.keys() - wanted)
    if strange:
        raise _LostError(
            f"question {strange[0]} was asked in a block that would not hold it by config.yaml: "
            "a setting of the data or the seed was changed since"
        )
    return tuple(
        tuple(given.get(question.question_id) for question in unit.questions) for unit in units
    )


def _frozen(workspace: Path, config: Config, source: Path) -> FrozenData:
    exclude = config.data.exclude
    dataset = load_dataset(
        resolve_path(config.data.questions, source),
        None if exclude is None else resolve_path(exclude, source),
        duration=config.data.duration,
    )
    return load_frozen(workspace, dataset.questions)


def _check(workspace: Path, decisions: Sequence[DecisionRow], reader: Reader) -> None:
    if not decisions:
        raise OptionError(
            f"{workspace}: run.db holds no gate decision, so that there is nothing to decide "
            f"again; let the run come to its first tests: {launcher()} "
            f"--resume {shown_path(workspace)}"
        )
    asked = [row for row in decisions if row.rollouts > 0]
    if asked and not any(
        reader.rows(OutcomeRow, Where(column="run_key", value=f"{row.run_key}/gate/*"))
        for row in asked
    ):
        raise OptionError(
            f"{workspace}: run.db holds {count(len(asked), 'gate decision')} but none of the "
            "answers to decide again from; restore run.db from a copy, or name the run's own "
            "workspace"
        )


def _gains(
    config: Config,
    source: Path,
    frozen: FrozenData,
    decisions: Sequence[DecisionRow],
    reader: Reader,
) -> dict[str, float]:
    """Where the simulator answered: what each candidate is truly worth, in accuracy."""
    if "search" not in simulated_roles(config):
        return {}
    place = resolve_path(config.twin.world, source)
    try:
        world = load_world(place.read_bytes())
    except msgspec.DecodeError as error:
        raise OptionError(
            f"{place}: {error}; restore the world that the run was made with"
        ) from error
    texts = {row.hash: row.text for row in reader.rows(DocumentRow)}
    questions = (*frozen.diag, *frozen.val, *frozen.test)
    gains = {}
    for row in decisions:
        before, after = (
            class_accuracy(world, questions, row.task_type, texts[digest])
            for digest in (row.current_hash, row.candidate_hash)
        )
        gains[row.run_key] = after - before
    return gains
