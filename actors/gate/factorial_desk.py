"""What the factorial gate works with: its peers, the run as the ledger has it, its documents.

What it knows lies in the ledger: what an edit has come to is told anew from its pairs, so that a
stopped run counts nothing twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import anyio
import msgspec

from actors.gate.eprocess import exact_alpha
from actors.gate.factorial.course import course
from actors.gate.factorial.schedule import Schedule
from actors.gate.factorial.states import FactorialEdit, live_edits, needs_pairs
from actors.gate.phase import arm_places, edits_as_born, logged, schedule_from, seen_by
from protocol.base import Request, Scope
from protocol.documents import Prompts, Skill
from protocol.evolver import Edit
from protocol.factorial import RenderEdits
from protocol.factorial_prompts import PromptEdit, RenderPrompts
from protocol.factorial_rows import PROMPTS, FactorialEditRow, FactorialScheduleRow, PairRow
from protocol.ledger import Select, Where, rows_of
from protocol.rollout import Answered, Missed, Rollout
from protocol.row import Row
from protocol.settings import GateSettings

__all__ = ["Desk", "Standing", "render_prompts", "render_skill", "standing_of"]

R = TypeVar("R")
T = TypeVar("T", bound=Row)


class Peer(Protocol):
    """Something that can be asked."""

    async def ask(self, request: Request[R]) -> R:
        """Send a request, wait for its reply."""
        ...


@dataclass(frozen=True)
class Desk:
    """What the factorial gate works with.

    roll: answers one question; infrastructure trouble comes back as ``Missed``. limiter: pairs in
    flight, of all classes. draining: true once a stop was asked for: draw no new pair.
    """

    settings: GateSettings
    seed: int
    ledger: Peer
    evolver: Peer
    roll: Callable[[Rollout], Awaitable[Answered | Missed]]
    limiter: anyio.CapacityLimiter
    draining: Callable[[], bool]

    async def rows(self, kind: type[T], *where: tuple[str, str | int]) -> tuple[T, ...]:
        """The committed rows of a table that meet every condition."""
        conditions = tuple(Where(column=column, value=value) for column, value in where)
        return rows_of(kind, await self.ledger.ask(Select(table=kind.TABLE, where=conditions)))


@dataclass(frozen=True)
class Standing:
    """The run as the ledger has it: schedule, edits and pairs of all classes.

    A scope is a class, or ``PROMPTS``, whose edits take part in the pairs of every class: what
    they have come to after a phase is known once all classes are through with it.
    """

    schedule: Schedule
    edits: tuple[FactorialEditRow, ...]
    pairs: tuple[PairRow, ...]
    settings: GateSettings

    def of(self, scope: str) -> tuple[FactorialEditRow, ...]:
        """All edits of a scope, in canonical order."""
        own = (row for row in self.edits if row.task_type == scope)
        return tuple(sorted(own, key=lambda row: row.position))

    def texts(self, scope: str, born_by: int) -> tuple[FactorialEditRow, ...]:
        """The edits of the documents, sentinel aside, that were born by then."""
        return tuple(row for row in self.of(scope) if row.born <= born_by and not row.sentinel)

    def after(self, scope: str, phase: int) -> tuple[FactorialEdit, ...]:
        """The edits after so many phases, later ones as they were born. Raises OpenPairs."""
        rows = self.of(scope)
        own = {row.edit_id for row in rows}
        others = {row.edit_id for row in self.edits} - own
        return course(
            edits_as_born(rows),
            [
                seen_by(logged(row), own, others)
                for row in self.pairs
                if row.phase <= phase and scope in (row.task_type, PROMPTS)
            ],
            exact_alpha(self.settings.drop_harm),
            until=phase,
            n_epochs=self.schedule.n_epochs,
        )

    def taking_part(self, task_type: str, phase: int) -> tuple[FactorialEdit, ...]:
        """The edits of a class and then of the prompts as a phase begins. Raises OpenPairs."""
        before = (*self.after(task_type, phase - 1), *self.after(PROMPTS, phase - 1))
        return tuple(edit for edit in before if edit.born <= phase)

    def check_whole(self, phase: int) -> None:
        """Raises ValueError if pairs of a phase that some edit needed were never laid out."""
        common = [e for e in self.after(PROMPTS, phase - 1) if e.born <= phase]
        for own in self.schedule.classes:
            if not own.pairs[phase - 1] or any(
                (row.task_type, row.phase) == (own.task_type, phase) for row in self.pairs
            ):
                continue
            # Of a class that has none left, those of the prompts still need its pairs.
            mine = [e for e in self.after(own.task_type, phase - 1) if e.born <= phase]
            if needs_pairs([*mine, *common]):
                raise ValueError(f"{own.task_type}: the pairs of phase {phase} are not drawn")

    def live(self, scope: str, epoch: int) -> list[FactorialEdit]:
        """The undecided edits as an epoch begins. Raises OpenPairs."""
        names = {row.edit_id for row in self.texts(scope, epoch - 1)}
        now = live_edits(self.after(scope, epoch - 1))
        return [edit for edit in now if edit.edit_id in names]


async def standing_of(desk: Desk) -> Standing:
    """Raises LookupError if nothing is scheduled."""
    return Standing(
        schedule_from(await desk.rows(FactorialScheduleRow)),
        await desk.rows(FactorialEditRow),
        await desk.rows(PairRow),
        desk.settings,
    )


async def render_skill(
    desk: Desk,
    scope: Scope,
    base: Skill,
    rows: Sequence[FactorialEditRow],
    on: Sequence[frozenset[str]],
) -> list[Skill]:
    """One document per set of edits; each set is asked for once."""
    places = [arm_places(names, rows) for names in on]
    wanted = tuple(dict.fromkeys(places))
    if not rows or not wanted:
        return [base] * len(places)
    edits = tuple(msgspec.json.decode(row.edit, type=Edit) for row in rows)
    rendered = await desk.evolver.ask(RenderEdits(scope=scope, base=base, edits=edits, on=wanted))
    texts = dict(zip(wanted, rendered.skills, strict=True))
    return [texts[place] for place in places]


async def render_prompts(
    desk: Desk,
    scope: Scope,
    base: Prompts,
    rows: Sequence[FactorialEditRow],
    on: Sequence[frozenset[str]],
) -> list[Prompts]:
    """The prompts under each set of edits; each set is asked for once."""
    places = [arm_places(names, rows) for names in on]
    wanted = tuple(dict.fromkeys(places))
    if not rows or not wanted:
        return [base] * len(places)
    edits = tuple(
        PromptEdit(document=row.document, edit=msgspec.json.decode(row.edit, type=Edit))
        for row in rows
    )
    rendered = await desk.evolver.ask(RenderPrompts(scope=scope, base=base, edits=edits, on=wanted))
    texts = dict(zip(wanted, rendered.prompts, strict=True))
    return [texts[place] for place in places]
