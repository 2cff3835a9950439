"""What the gate carries from epoch to epoch: units' difficulty, and the snapshots in force.

Pure, and a function of the ledger's rows alone, folded in epoch by epoch: whoever starts from an
older state (or from none) comes to the same one. Two things hang on it. A ladder is ordered by
the difficulty that was known before its snapshot was drawn, never by a later one, which may hold
that snapshot (study, T1). And a snapshot that has turned many candidates down is replaced at the
epoch's end, since those that survive are the lucky ones (study, 2.3).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from actors.gate.ema import UnitEma, lookup
from protocol.rows import DecisionRow

__all__ = ["GateState", "KnownSnapshot", "advance", "in_force", "known_difficulty"]

_TURNED_DOWN = ("reject", "untestable")


class KnownSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The snapshot in force for a skill; the first three fields name it (row P1-1a).

    skill_hash: the skill's, or that of all skills where the agent chooses among them.
    generation: 0 for the first, one more for each that replaced another.
    rejections: candidates that this generation turned down. A test that its luck made
        impossible from the start counts: it is the same trap.
    drawn: a candidate has met this generation. ema: the class's units as they were known when
        it was first drawn; empty before.
    retired: its draws are in the EMA of the units, because another snapshot took its place.
    """

    task_type: str
    skill_hash: str
    prompts_version: str
    generation: int = 0
    rejections: int = 0
    drawn: bool = False
    ema: tuple[UnitEma, ...] = ()
    retired: bool = False

    @property
    def name(self) -> tuple[str, str, str]:
        """Class, skill, prompts version."""
        return self.task_type, self.skill_hash, self.prompts_version


class GateState(msgspec.Struct, frozen=True, kw_only=True):
    """What the checkpoint keeps. observed_epoch: the last one folded in (row W-5)."""

    observed_epoch: int = 0
    units: tuple[UnitEma, ...] = ()
    snapshots: tuple[KnownSnapshot, ...] = ()


def in_force(
    state: GateState, task_type: str, skill_hash: str, prompts_version: str
) -> KnownSnapshot:
    """The snapshot that a candidate of this skill is tested on now."""
    wanted = KnownSnapshot(
        task_type=task_type, skill_hash=skill_hash, prompts_version=prompts_version
    )
    found = [known for known in state.snapshots if known.name == wanted.name]
    return found[0] if found else wanted


def known_difficulty(state: GateState, snapshot: KnownSnapshot) -> dict[tuple[str, str], float]:
    """The EMA that may order the ladder: as it was before the snapshot was drawn."""
    return lookup(snapshot.ema if snapshot.drawn else state.units)


def advance(
    state: GateState, decisions: Iterable[DecisionRow], fresh_after: int
) -> tuple[tuple[KnownSnapshot, ...], tuple[KnownSnapshot, ...]]:
    """The snapshots after an epoch with these decisions, and those that it put out of force.

    state: as it was during the epoch. A snapshot is out of force when its class has come to
    another skill or prompts version, or when it has turned ``fresh_after`` candidates down; the
    latter gets a successor, drawn when the next candidate comes.
    """
    known = {snapshot.name: snapshot for snapshot in state.snapshots}
    standing: dict[str, tuple[str, str, str] | None] = {}
    read = [row for row in decisions if row.snapshot_hash]
    for row in sorted(read, key=lambda row: (row.task_type, row.step, row.run_key)):
        seen = in_force(state, row.task_type, row.snapshot_hash, row.prompts_version)
        before = known.get(seen.name, seen)
        if row.generation == before.generation:
            known[seen.name] = _after(state, before, row)
        standing[row.task_type] = None if row.verdict == "accept" else seen.name
    gone: list[KnownSnapshot] = []
    for name, snapshot in sorted(known.items()):
        stands = standing.get(snapshot.task_type, name) == name
        worn = snapshot.task_type in standing and snapshot.rejections >= fresh_after
        if stands and not worn:
            continue
        if snapshot.drawn and not snapshot.retired:
            gone.append(snapshot)
        known[name] = msgspec.structs.replace(snapshot, retired=snapshot.drawn)
        if stands:
            known[name] = KnownSnapshot(
                task_type=snapshot.task_type,
                skill_hash=snapshot.skill_hash,
                prompts_version=snapshot.prompts_version,
                generation=snapshot.generation + 1,
            )
    return tuple(snapshot for _, snapshot in sorted(known.items())), tuple(gone)


def _after(state: GateState, snapshot: KnownSnapshot, row: DecisionRow) -> KnownSnapshot:
    """The snapshot after a candidate has met it."""
    if not snapshot.drawn:
        mine = tuple(unit for unit in state.units if unit.task_type == snapshot.task_type)
        snapshot = msgspec.structs.replace(snapshot, drawn=True, ema=mine)
    turned_down = row.verdict in _TURNED_DOWN
    return msgspec.structs.replace(snapshot, rejections=snapshot.rejections + turned_down)
