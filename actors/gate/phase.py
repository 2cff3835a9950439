"""The factorial gate's rows: a schedule, edits and pairs as the ledger holds them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import cast

import msgspec

from actors.gate.eprocess import exact_alpha
from actors.gate.factorial.coins import Coin, PairCoins, draw_coins
from actors.gate.factorial.course import LoggedPair
from actors.gate.factorial.keyed import keyed_integer
from actors.gate.factorial.report import edit_results
from actors.gate.factorial.schedule import (
    ClassSchedule,
    Pair,
    Schedule,
    UnitSize,
    make_schedule,
)
from actors.gate.factorial.sentinel import check_sentinels
from actors.gate.factorial.states import FactorialEdit, conclude, counted
from actors.gate.factorial.stepup import evidence_of, step_up
from actors.gate.factorial.tally import Outcome, outcome
from protocol.dataset import Unit
from protocol.factorial_rows import (
    PROMPTS,
    FactorialEditRow,
    FactorialRunRow,
    FactorialScheduleRow,
    PairRow,
)
from protocol.keys import slug
from protocol.settings import GateSettings

__all__ = [
    "answered",
    "arm_places",
    "decision_rows",
    "differences",
    "editor_on",
    "edits_as_born",
    "final_rows",
    "logged",
    "opened",
    "schedule_from",
    "schedule_of",
    "schedule_rows",
    "seen_by",
    "sentinel_rows",
    "voided",
]

_Coins = tuple[tuple[str, int, bool], ...]


# -- schedule ---------------------------------------------------------------------------


def schedule_of(
    settings: GateSettings, seed: int, n_epochs: int, units: Iterable[Unit]
) -> Schedule:
    """What a run will draw, from all units of its trainable classes.

    Raises ScheduleError: the units or the budget make no schedule.
    """
    sizes: defaultdict[str, list[UnitSize]] = defaultdict(list)
    for unit in units:
        sizes[unit.task_type].append(UnitSize(unit.unit_id, len(unit.questions)))
    return make_schedule(
        sizes,
        seed=seed,
        n_epochs=n_epochs,
        budget=settings.budget,
        fold=exact_alpha(settings.fold),
    )


def schedule_rows(schedule: Schedule) -> tuple[FactorialScheduleRow, ...]:
    """One row per class."""
    return tuple(
        FactorialScheduleRow(
            task_type=own.task_type,
            seed=schedule.seed,
            n_epochs=schedule.n_epochs,
            budget=schedule.budget,
            design=_json([(unit.unit_id, unit.n_questions) for unit in own.design]),
            gate=_json([(unit.unit_id, unit.n_questions) for unit in own.gate]),
            counts=_json(own.counts),
        )
        for own in schedule.classes
    )


def schedule_from(rows: Sequence[FactorialScheduleRow]) -> Schedule:
    """The schedule that the rows hold, of these classes. Raises LookupError without a row."""
    if not rows:
        raise LookupError("run.db: the class has no factorial schedule")
    return Schedule(
        seed=rows[0].seed,
        n_epochs=rows[0].n_epochs,
        budget=rows[0].budget,
        classes=tuple(
            ClassSchedule(
                task_type=row.task_type,
                design=_sizes(row.design),
                gate=_sizes(row.gate),
                counts=msgspec.json.decode(row.counts, type=tuple[tuple[int, ...], ...]),
            )
            for row in rows
        ),
    )


def differences(
    before: Iterable[FactorialScheduleRow], after: Iterable[FactorialScheduleRow]
) -> tuple[str, ...]:
    """What of a schedule is another than it was, by class and field; empty: nothing."""
    old = {row.task_type: row for row in before}
    new = {row.task_type: row for row in after}
    told = [f"{name}: is scheduled in one of them only" for name in sorted(old.keys() ^ new.keys())]
    for name in sorted(old.keys() & new.keys()):
        told += [
            f"{name}: {field} differs"
            for field in FactorialScheduleRow.__struct_fields__
            if getattr(old[name], field) != getattr(new[name], field)
        ]
    return tuple(told)


def sentinel_rows(schedule: Schedule) -> tuple[FactorialEditRow, ...]:
    """One edit per class, and one of the prompts, that changes nothing and is known to."""
    return tuple(
        FactorialEditRow(
            edit_id=f"{slug(name)}/sentinel",
            task_type=name,
            born=1,
            position=0,
            edit="",
            group_id=None,
            sentinel=True,
            proposed_by="",
            document="skill" if name != PROMPTS else "",
        )
        for name in (*(own.task_type for own in schedule.classes), PROMPTS)
    )


def _sizes(text: str) -> tuple[UnitSize, ...]:
    pairs = msgspec.json.decode(text, type=tuple[tuple[str, int], ...])
    return tuple(UnitSize(unit_id, n_questions) for unit_id, n_questions in pairs)


# -- edits ------------------------------------------------------------------------------


def edits_as_born(rows: Iterable[FactorialEditRow]) -> tuple[FactorialEdit, ...]:
    """The edits of a class in canonical order, live and with nothing counted."""
    return tuple(
        FactorialEdit(
            edit_id=row.edit_id,
            task_type=row.task_type,
            born=row.born,
            group=row.group_id,
            sentinel=row.sentinel,
        )
        for row in sorted(rows, key=lambda row: row.position)
    )


def editor_on(seed: int, epoch: int, unit_id: str, live: Iterable[FactorialEdit]) -> frozenset[str]:
    """The edits that are on in the editor's draw of a unit: each by an own coin.

    Of a group one random live member takes part. These draws are never used in a test.
    """
    picked: dict[str, tuple[int, FactorialEdit]] = {}
    for edit in live:
        if edit.sentinel:
            continue
        key = (seed, edit.task_type, epoch, unit_id, edit.edit_id)
        mine = (keyed_integer("editor-ticket", *key), edit)
        name = edit.group or edit.edit_id
        if name not in picked or mine[0] < picked[name][0]:
            picked[name] = mine
    return frozenset(
        edit.edit_id
        for _, edit in picked.values()
        if keyed_integer("editor", seed, edit.task_type, epoch, unit_id, edit.edit_id) & 1
    )


def arm_places(on: Iterable[str], rows: Sequence[FactorialEditRow]) -> tuple[int, ...]:
    """Edits by their places among the class's edits, the sentinel left out: it has no text.

    rows: of the class, or of the prompts, in canonical order, without the sentinel.
    """
    wanted = set(on)
    return tuple(place for place, row in enumerate(rows) if row.edit_id in wanted)


def final_rows(
    rows: Sequence[FactorialEditRow], ended: Sequence[FactorialEdit]
) -> tuple[FactorialEditRow, ...]:
    """The rows with what became of their edits. ended: the same edits, after the decision."""
    results = {result.edit_id: result for result in edit_results(ended)}
    seen = {edit.edit_id: edit.seen for edit in ended}
    return tuple(
        msgspec.structs.replace(
            row,
            state=result.state,
            wins=result.wins,
            losses=result.losses,
            seen=seen[row.edit_id],
            pairs=result.pairs,
            p=result.p,
            effect=result.effect,
            low=result.low,
            high=result.high,
        )
        for row in rows
        for result in (results[row.edit_id],)
    )


def decision_rows(
    rows: Sequence[FactorialEditRow], edits: Sequence[FactorialEdit], q: Fraction, cap: Fraction
) -> tuple[FactorialRunRow, tuple[FactorialEditRow, ...], tuple[str, ...]]:
    """The run's one decision, the rows with what became of their edits, and the adopted ids.

    edits: those of the rows, after the last pair. Failing sentinels adopt nothing.
    """
    decided, sentinels = step_up(evidence_of(edits), q, cap), check_sentinels(edits)
    adopted = decided.adopted if sentinels.ok else ()
    run = FactorialRunRow(
        run=1,
        q=str(q),
        cap=str(cap),
        n_edits=len(counted(edits)),
        tau=float(decided.tau),
        cut=None if decided.cut is None else float(decided.cut),
        passed=decided.passed,
        adopted=len(adopted),
        sentinel_wins=sentinels.wins,
        sentinel_losses=sentinels.losses,
        sentinel_p=float(sentinels.p),
        ok=sentinels.ok,
    )
    return run, final_rows(rows, conclude(edits, adopted)), adopted


# -- pairs ------------------------------------------------------------------------------


def opened(
    seed: int,
    wanted: Sequence[Pair],
    edits: Sequence[FactorialEdit],
    before: Mapping[int, PairRow],
) -> tuple[PairRow, ...]:
    """A phase's pairs with their coins: drawn now, or as they were written before.

    edits: as they stand when the phase begins. before: the phase's rows by number, all or none.

    Raises ValueError if the coins of pairs that wait are not those of these edits: a coin must
    never be drawn again. (Later edits may regroup these ones; then nothing waits any more.)
    """
    if before and all(row.state != "open" for row in before.values()):
        return tuple(before[pair.index] for pair in wanted)
    fresh = tuple(_open_row(draw_coins(seed, pair, edits)) for pair in wanted)
    if not before:
        return fresh
    for row in fresh:
        written = before.get(row.pair)
        if written is None or (written.unit_id, written.coins) != (row.unit_id, row.coins):
            was = "nothing" if written is None else f"{written.unit_id} {written.coins}"
            raise ValueError(
                f"{row.task_type}, pair {row.pair}: run.db has {was}, the edits there give "
                f"{row.unit_id} {row.coins}"
            )
    return tuple(before[row.pair] for row in fresh)


def answered(row: PairRow, a: Sequence[bool | None], b: Sequence[bool | None]) -> PairRow | None:
    """The pair with what both arms came to; None: an answer is lost, the pair stays open."""
    sign = outcome(a, b)
    if sign is None:
        return None
    return msgspec.structs.replace(
        row, state="drawn", right_a=_json(a), right_b=_json(b), outcome=sign
    )


def voided(row: PairRow, a: Sequence[bool | None], b: Sequence[bool | None]) -> PairRow:
    """The pair without an outcome, for good."""
    return msgspec.structs.replace(row, state="void", right_a=_json(a), right_b=_json(b))


def logged(row: PairRow) -> LoggedPair:
    """The pair as the tally reads it."""
    coins = msgspec.json.decode(row.coins, type=_Coins)
    return LoggedPair(
        coins=PairCoins(
            Pair(task_type=row.task_type, phase=row.phase, index=row.pair, unit_id=row.unit_id),
            tuple(
                Coin(edit_id, 1 if sign > 0 else -1, virtual) for edit_id, sign, virtual in coins
            ),
        ),
        outcome=cast(Outcome, row.outcome),
        drawn=row.state != "open",
    )


def seen_by(pair: LoggedPair, own: Collection[str], others: Collection[str]) -> LoggedPair:
    """The pair with the coins of ``own`` alone. others: edits whose coins are left out.

    A coin of an edit that is in neither stays, for the tally to find.
    """
    kept = tuple(
        coin for coin in pair.coins.coins if coin.edit_id in own or coin.edit_id not in others
    )
    return msgspec.structs.replace(pair, coins=PairCoins(pair.coins.pair, kept))


def _open_row(drawn: PairCoins) -> PairRow:
    pair = drawn.pair
    return PairRow(
        task_type=pair.task_type,
        pair=pair.index,
        phase=pair.phase,
        unit_id=pair.unit_id,
        coins=_json([(coin.edit_id, coin.sign, coin.virtual) for coin in drawn.coins]),
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
