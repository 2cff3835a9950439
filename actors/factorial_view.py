"""A run under the factorial gate as its rows tell it: schedule, pairs, edits, decision. Reads only.

Nothing of how an edit fares is told before the run has decided: whoever stopped it by such numbers
would choose its outcome. Never decides anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

import msgspec

from actors.gate.factorial.sentinel import LEVEL, two_sided
from actors.gate.phase import logged
from actors.ledger.reader import Reader
from protocol.evolver import Edit
from protocol.factorial_rows import (
    PROMPTS,
    FactorialEditRow,
    FactorialRunRow,
    FactorialScheduleRow,
    PairRow,
)
from protocol.keys import step_key
from protocol.rows import StepRow

__all__ = [
    "VOID",
    "ClassView",
    "EditView",
    "FactorialView",
    "PhasePairs",
    "adopted_edits",
    "adopted_key",
    "factorial_view",
    "void_words",
]

VOID = "THE RUN'S CLAIMS ARE VOID"

_Sizes = msgspec.json.Decoder(tuple[tuple[str, int], ...])
_Counts = msgspec.json.Decoder(tuple[tuple[int, ...], ...])


class PhasePairs(msgspec.Struct, frozen=True, kw_only=True):
    """A class's pairs in a phase: as scheduled, answered in both arms, lost for good, waiting.

    A class without live edits draws none of what is planned.
    """

    phase: int
    planned: int
    drawn: int = 0
    void: int = 0
    waiting: int = 0

    @property
    def done(self) -> int:
        """Answered or lost."""
        return self.drawn + self.void


class ClassView(msgspec.Struct, frozen=True, kw_only=True):
    """A class. n_design, n_gate: units to learn from and to test on. steps: epochs proposed in."""

    task_type: str
    n_design: int
    n_gate: int
    phases: tuple[PhasePairs, ...]
    steps: int

    def total(self, what: str) -> int:
        """The sum of ``planned``, ``drawn``, ``void`` or ``done`` over the phases."""
        return sum(int(getattr(phase, what)) for phase in self.phases)


class EditView(msgspec.Struct, frozen=True, kw_only=True):
    """An edit or a sentinel, whose ``edit`` is None.

    dropped_after: the epoch after which it was turned off. path: after every valid pair that it
    took part in while live: (pair, W - L, W + L); pairs of an edit of the prompts are counted over
    all classes, phase by phase. Both empty before the run has decided.
    """

    row: FactorialEditRow
    edit: Edit | None
    dropped_after: int | None = None
    path: tuple[tuple[int, int, int], ...] = ()

    @property
    def discordant(self) -> int:
        """D of its p-value; of a dropped edit also what it saw after it was turned off."""
        row = self.row
        seen = row.seen if row.state == "dropped" else (row.wins or 0) + (row.losses or 0)
        return seen or 0

    @property
    def coin_p(self) -> float:
        """How probable W and L as uneven as these are if the edit changes nothing, two-sided."""
        return float(two_sided(self.row.wins or 0, self.row.losses or 0))


class FactorialView(msgspec.Struct, frozen=True, kw_only=True):
    """The whole run. planned, spent: draws of a unit. run: the decision, None before it."""

    n_epochs: int
    budget: int
    planned: int
    spent: int
    classes: tuple[ClassView, ...]
    edits: tuple[EditView, ...]
    run: FactorialRunRow | None

    @property
    def void(self) -> bool:
        """Whether the run has decided and its sentinels do not look like coins."""
        return self.run is not None and not self.run.ok

    @property
    def proposed(self) -> tuple[EditView, ...]:
        """The M edits, without sentinels."""
        return tuple(one for one in self.edits if not one.row.sentinel)

    @property
    def sentinels(self) -> tuple[EditView, ...]:
        """The edits that change nothing and are known to."""
        return tuple(one for one in self.edits if one.row.sentinel)

    @property
    def sentinel_level(self) -> Fraction:
        """The p-value at or below which a single sentinel fails: a share of the level."""
        return LEVEL / (len(self.sentinels) + 1)

    def scope(self, row: FactorialEditRow) -> ClassView:
        """What an edit is tested on: its class, or all of them together."""
        if row.task_type != PROMPTS:
            return next(own for own in self.classes if own.task_type == row.task_type)
        return ClassView(
            task_type=PROMPTS,
            n_design=sum(own.n_design for own in self.classes),
            n_gate=sum(own.n_gate for own in self.classes),
            phases=tuple(
                PhasePairs(
                    phase=phase,
                    **{
                        what: self.in_phase(phase, what)
                        for what in ("planned", "drawn", "void", "waiting")
                    },
                )
                for phase in range(1, self.n_epochs + 2)
            ),
            steps=0,
        )

    def total(self, what: str) -> int:
        """As of ``ClassView``, over all classes."""
        return sum(own.total(what) for own in self.classes)

    def in_phase(self, phase: int, what: str) -> int:
        """The same, of one phase."""
        return sum(int(getattr(own.phases[phase - 1], what)) for own in self.classes)

    def phase_name(self, phase: int) -> str:
        """``epoch 2``, or ``certification``."""
        return f"epoch {phase}" if phase <= self.n_epochs else "certification"

    def dropped_in(self, epoch: int) -> int:
        """Edits that were turned off after the epoch's pairs."""
        return sum(one.dropped_after == epoch for one in self.edits)


def factorial_view(reader: Reader) -> FactorialView | None:
    """What the ledger tells; None where no schedule was fixed, such as in a run with the ladder."""
    schedules = sorted(reader.rows(FactorialScheduleRow), key=lambda row: row.task_type)
    if not schedules:
        return None
    run = next(iter(reader.rows(FactorialRunRow)), None)
    pairs = sorted(reader.rows(PairRow), key=lambda row: (row.task_type, row.pair))
    steps = Counter(row.task_type for row in reader.rows(StepRow) if row.step == 1)
    n_epochs = schedules[0].n_epochs
    classes = tuple(
        _class(row, [one for one in pairs if one.task_type == row.task_type], steps[row.task_type])
        for row in schedules
    )
    edits = sorted(
        reader.rows(FactorialEditRow), key=lambda row: (row.sentinel, row.task_type, row.position)
    )
    told = (
        {}
        if run is None
        else _paths(pairs, schedules, {row.edit_id for row in edits if row.task_type == PROMPTS})
    )
    return FactorialView(
        n_epochs=n_epochs,
        budget=schedules[0].budget,
        planned=sum(n_epochs * own.n_design + 2 * own.total("planned") for own in classes),
        spent=sum(own.steps * own.n_design + 2 * own.total("done") for own in classes),
        classes=classes,
        edits=tuple(_edit(row, told) for row in edits),
        run=run,
    )


def _class(row: FactorialScheduleRow, pairs: Sequence[PairRow], steps: int) -> ClassView:
    states = Counter((one.phase, one.state) for one in pairs)
    return ClassView(
        task_type=row.task_type,
        n_design=len(_Sizes.decode(row.design)),
        n_gate=len(_Sizes.decode(row.gate)),
        phases=tuple(
            PhasePairs(
                phase=phase,
                planned=sum(counts),
                drawn=states[phase, "drawn"],
                void=states[phase, "void"],
                waiting=states[phase, "open"],
            )
            for phase, counts in enumerate(_Counts.decode(row.counts), start=1)
        ),
        steps=steps,
    )


class _Path(msgspec.Struct):
    """last: the last phase with a coin that was flipped in earnest."""

    steps: list[tuple[int, int, int]] = msgspec.field(default_factory=list)
    last: int = 0


def _paths(
    pairs: Sequence[PairRow], schedules: Sequence[FactorialScheduleRow], common: Collection[str]
) -> dict[str, _Path]:
    """Every edit's course over the pairs, phase by phase. common: the edits of the prompts."""
    told: dict[str, _Path] = {}
    counts = [_Counts.decode(row.counts) for row in schedules]
    planned = [sum(map(sum, phase)) for phase in zip(*counts, strict=True)]

    reached: Counter[int] = Counter()
    for row in sorted(pairs, key=lambda row: (row.phase, row.task_type, row.pair)):
        reached[row.phase] += 1
        among_all = sum(planned[: row.phase - 1]) + reached[row.phase]
        pair = logged(row)
        for coin in pair.coins.coins:
            if coin.virtual:
                continue
            own = told.setdefault(coin.edit_id, _Path())
            own.last = row.phase
            if pair.outcome is None:
                continue
            _, balance, seen = own.steps[-1] if own.steps else (0, 0, 0)
            moved = coin.sign * pair.outcome
            place = among_all if coin.edit_id in common else row.pair
            own.steps.append((place, balance + moved, seen + abs(moved)))
    return told


def _edit(row: FactorialEditRow, told: Mapping[str, _Path]) -> EditView:
    own = told.get(row.edit_id)
    return EditView(
        row=row,
        edit=msgspec.json.decode(row.edit, type=Edit) if row.edit else None,
        dropped_after=own.last if own is not None and row.state == "dropped" else None,
        path=() if own is None else tuple(own.steps),
    )


def adopted_edits(reader: Reader, scope: str) -> tuple[tuple[int, FactorialEditRow], ...]:
    """What a class, or the prompts, adopted, each with its place under its ``adopted_key``."""
    rows = [row for row in reader.rows(FactorialEditRow) if row.task_type == scope]
    counts: Counter[str] = Counter()
    placed = []
    for row in sorted(rows, key=lambda row: row.position):
        if row.state == "adopted":
            placed.append((counts[row.document], row))
            counts[row.document] += 1
    return tuple(placed)


def adopted_key(n_epochs: int, row: FactorialEditRow) -> str:
    """The ``run_key`` of an adopted edit in the step that adopted it: one a document."""
    key = f"{step_key(n_epochs, row.task_type, 2)}/adopted"
    return f"{key}/{row.document}" if row.task_type == PROMPTS else key


def void_words(run: FactorialRunRow | None) -> str:
    """What failing sentinels mean; empty: none fails, or nothing is decided."""
    if run is None or run.ok:
        return ""
    return (
        f"{VOID}: edits that change nothing did not look like fair coins "
        f"({run.sentinel_wins} won, {run.sentinel_losses} lost, p {run.sentinel_p:.2g}).\n"
        "Arms were mixed up, or pairs were counted by how they came out; nothing was adopted."
    )
