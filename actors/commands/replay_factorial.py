"""A run with ``gate.design: factorial`` as it was logged, and other rules on its pairs. Reads only.

Everything is in run.db: edits as they were proposed, pairs with their coins and outcomes, the
decision. Where the simulator answered, the planted truth of every edit stands beside it, and what
the edits that a rule adopts are worth together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import get_args

import msgspec

from actors.commands.html.words import count
from actors.commands.replay_factorial_rules import (
    FactorialRule,
    FactorialVerdict,
    StoredClass,
    decide_again,
)
from actors.commands.seed_options import OptionError
from actors.commands.workspace_view import workspace_ledger
from actors.config import resolve_path
from actors.dataset.pools import load_frozen
from actors.dataset.questions import load_dataset
from actors.factorial_documents import edited_documents, edited_package
from actors.factorial_report import true_gains
from actors.gate.eprocess import exact_alpha
from actors.gate.phase import edits_as_born, logged, seen_by
from actors.ledger.reader import Reader
from actors.places import launcher, shown_path
from actors.system import read_seed_package, simulated_roles
from actors.twin.truth import Worth, classify, package_accuracy
from actors.twin.world import World, load_world
from protocol.dataset import Question
from protocol.documents import PackageTexts
from protocol.factorial_rows import (
    PROMPTS,
    FactorialEditRow,
    FactorialRunRow,
    FactorialScheduleRow,
    PairRow,
)
from protocol.settings import Config, EvolverSettings

__all__ = [
    "FactorialReplay",
    "FactorialTally",
    "ReplayedEdit",
    "StoredFactorial",
    "factorial_replay",
    "stored_factorial",
]

_SAID = {"adopted": "adopt", "rejected": "reject", "dropped": "dropped"}


@dataclass(frozen=True)
class _Truth:
    """What the simulator knows. gains: by edit, alone on the base; test: the pool's questions."""

    gains: dict[str, float]
    world: World
    test: tuple[Question, ...]
    base: PackageTexts
    settings: EvolverSettings


@dataclass(frozen=True)
class StoredFactorial:
    """What can be decided again. rows: edits without sentinels, in the order of the decision.

    own: what the run decided by. truth: None where no simulator answered.
    """

    own: FactorialRule
    run: FactorialRunRow
    n_epochs: int
    rows: tuple[FactorialEditRow, ...]
    classes: tuple[StoredClass, ...]
    n_pairs: int
    truth: _Truth | None


class FactorialTally(msgspec.Struct, frozen=True, kw_only=True):
    """One rule over all edits.

    adopted to unknown: edits by what the rule says. helpful, useless, harmful: what the adopted
    ones truly are, each alone on the documents that the run began with; false_adoptions: the
    latter two. test_gain: of the true accuracy on the test pool with all of them, in [-1, 1]. All
    None where no truth is known.
    """

    rule: str
    edits: int
    adopted: int
    rejected: int
    dropped: int
    unknown: int
    helpful: int | None
    useless: int | None
    harmful: int | None
    false_adoptions: int | None
    test_gain: float | None


class ReplayedEdit(msgspec.Struct, frozen=True, kw_only=True):
    """One edit. stored: what the run has made of it. gain: planted, in accuracy."""

    edit_id: str
    task_type: str
    group: str | None
    stored: str
    gain: float | None
    truly: str | None
    verdicts: dict[str, FactorialVerdict]


class FactorialReplay(msgspec.Struct, frozen=True, kw_only=True):
    """A run under every rule. q, cap, drop_harm: the run's own, exact.

    differing: edits of which the run's own rule says another thing than is stored.
    """

    workspace: str
    q: str
    cap: str
    drop_harm: str
    pairs: int
    sentinels_ok: bool
    differing: tuple[str, ...]
    rules: tuple[FactorialTally, ...]
    edits: tuple[ReplayedEdit, ...]


def stored_factorial(workspace: Path, config: Config) -> StoredFactorial:
    """Read a workspace.

    Raises OptionError if it has not decided yet; ConfigError, DataError, WorkspaceError, LoadError
    or OSError for files that cannot be read.
    """
    with workspace_ledger(workspace) as reader:
        runs = reader.rows(FactorialRunRow)
        if not runs:
            raise OptionError(
                f"{workspace}: gate.design is factorial and the run has not decided yet, which it "
                f"does once, at its end; go on with it: {launcher()} --resume "
                f"{shown_path(workspace)}"
            )
        schedules = sorted(reader.rows(FactorialScheduleRow), key=lambda row: row.task_type)
        everyone = sorted(
            reader.rows(FactorialEditRow), key=lambda row: (row.task_type, row.position)
        )
        pairs = reader.rows(PairRow)
        _check(workspace, everyone, pairs)
        truth = _truth(workspace, config, reader)
    return StoredFactorial(
        own=FactorialRule(
            name="factorial",
            kind="factorial",
            q=Fraction(runs[0].q),
            cap=Fraction(runs[0].cap),
            drop_harm=exact_alpha(config.gate.drop_harm),
        ),
        run=runs[0],
        n_epochs=schedules[0].n_epochs,
        rows=tuple(row for row in everyone if not row.sentinel),
        classes=tuple(
            _scope(name, everyone, pairs) for name in (*(o.task_type for o in schedules), PROMPTS)
        ),
        n_pairs=len(pairs),
        truth=truth,
    )


def _scope(
    name: str, everyone: Sequence[FactorialEditRow], pairs: Sequence[PairRow]
) -> StoredClass:
    """A class's edits with its pairs; those of the prompts with the pairs of all classes."""
    rows = [row for row in everyone if row.task_type == name]
    own = {row.edit_id for row in rows}
    others = {row.edit_id for row in everyone} - own
    return StoredClass(
        edits=edits_as_born(rows),
        log=tuple(
            seen_by(logged(row), own, others) for row in pairs if name in (row.task_type, PROMPTS)
        ),
    )


def factorial_replay(
    workspace: Path, run: StoredFactorial, rules: Sequence[FactorialRule]
) -> FactorialReplay:
    """Every rule on every edit; the run's own is always compared with what is stored."""
    wanted = {rule.name: rule for rule in (run.own, *rules)}
    said = {
        name: decide_again(rule, run.classes, run.n_epochs, ok=run.run.ok)
        for name, rule in wanted.items()
    }
    own = said[run.own.name]
    edits = tuple(
        _edit(run, row, {rule.name: said[rule.name][row.edit_id] for rule in rules})
        for row in run.rows
    )
    return FactorialReplay(
        workspace=str(workspace),
        q=str(run.own.q),
        cap=str(run.own.cap),
        drop_harm=str(run.own.drop_harm),
        pairs=run.n_pairs,
        sentinels_ok=run.run.ok,
        differing=tuple(
            row.edit_id for row in run.rows if own[row.edit_id].said != _SAID.get(row.state)
        ),
        rules=tuple(_tally(run, rule.name, edits) for rule in rules),
        edits=edits,
    )


def _edit(
    run: StoredFactorial, row: FactorialEditRow, verdicts: dict[str, FactorialVerdict]
) -> ReplayedEdit:
    gain = None if run.truth is None else run.truth.gains[row.edit_id]
    return ReplayedEdit(
        edit_id=row.edit_id,
        task_type=row.task_type,
        group=row.group_id,
        stored=row.state,
        gain=gain,
        truly=None if gain is None else classify(gain),
        verdicts=verdicts,
    )


def _tally(run: StoredFactorial, rule: str, edits: Sequence[ReplayedEdit]) -> FactorialTally:
    said = Counter(edit.verdicts[rule].said for edit in edits)
    taken = [edit for edit in edits if edit.verdicts[rule].said == "adopt"]
    truly = Counter(edit.truly for edit in taken)
    known = run.truth is not None
    kinds = {name: truly[name] if known else None for name in get_args(Worth)}
    names = {edit.edit_id for edit in taken}
    return FactorialTally(
        rule=rule,
        edits=len(edits),
        adopted=said["adopt"],
        rejected=said["reject"],
        dropped=said["dropped"],
        unknown=said["unknown"],
        helpful=kinds["helpful"],
        useless=kinds["useless"],
        harmful=kinds["harmful"],
        false_adoptions=truly["useless"] + truly["harmful"] if known else None,
        test_gain=None if run.truth is None else _together(run.truth, run.rows, names),
    )


def _together(truth: _Truth, rows: Iterable[FactorialEditRow], adopted: set[str]) -> float:
    """What the adopted edits are truly worth on the test pool, all of them on."""
    documents = edited_documents(truth.base, rows, truth.settings)
    texts = edited_package(truth.base, documents, adopted)
    before, after = (
        package_accuracy(truth.world, truth.test, package) for package in (truth.base, texts)
    )
    return after - before


def _check(workspace: Path, rows: Sequence[FactorialEditRow], pairs: Sequence[PairRow]) -> None:
    if rows and not pairs:
        raise OptionError(
            f"{workspace}: run.db holds a decision over {count(len(rows), 'edit')} but no pair "
            "that it was made from; restore run.db from a copy, or name the run's own workspace"
        )
    waiting = [row for row in pairs if row.state == "open"]
    if waiting:
        raise OptionError(
            f"{workspace}: run.db holds a decision, and {count(len(waiting), 'pair')} without an "
            f"outcome ({waiting[0].task_type}, pair {waiting[0].pair}); restore run.db from a copy"
        )


def _truth(workspace: Path, config: Config, reader: Reader) -> _Truth | None:
    """Where the simulator answered. Raises OptionError if its world cannot be read."""
    if "search" not in simulated_roles(config):
        return None
    source = workspace / "config.yaml"
    place = resolve_path(config.twin.world, source)
    try:
        world = load_world(place.read_bytes())
    except msgspec.DecodeError as error:
        raise OptionError(
            f"{place}: {error}; restore the world that the run was made with"
        ) from error
    exclude = config.data.exclude
    dataset = load_dataset(
        resolve_path(config.data.questions, source),
        None if exclude is None else resolve_path(exclude, source),
        duration=config.data.duration,
    )
    frozen = load_frozen(workspace, dataset.questions)
    base = read_seed_package(workspace)
    questions = (*frozen.diag, *frozen.val, *frozen.test)
    return _Truth(
        gains=true_gains(reader, config, base, world, questions),
        world=world,
        test=frozen.test,
        base=base,
        settings=config.evolver,
    )
