"""The factorial gate at work: plans, flips coins, draws pairs, decides.

What it knows lies in the ledger: a pair's coins are there before the pair is drawn, and what an
edit has come to is told anew from its pairs, so that a stopped run draws no coin and asks no
answered question again, and counts nothing twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import anyio
import msgspec
import structlog

from actors.gate.eprocess import exact_alpha
from actors.gate.factorial.course import LoggedPair, course
from actors.gate.factorial.preview import preview, preview_lines
from actors.gate.factorial.schedule import Schedule, ScheduleError, phase_pairs
from actors.gate.factorial.sentinel import check_sentinels
from actors.gate.factorial.states import (
    FactorialEdit,
    conclude,
    counted,
    live_edits,
    needs_pairs,
)
from actors.gate.factorial.stepup import evidence_of, step_up
from actors.gate.factorial_telling import tell_decision, tell_edit, tell_pair
from actors.gate.levels import q_of
from actors.gate.pair_draws import DrawnPair, PairTask, draw_pair, known_answers
from actors.gate.phase import (
    answered,
    arm_places,
    differences,
    editor_on,
    edits_as_born,
    final_rows,
    logged,
    opened,
    schedule_from,
    schedule_of,
    schedule_rows,
    sentinel_rows,
    voided,
)
from protocol.base import Refused, Request, Scope
from protocol.documents import Skill
from protocol.evolver import Edit
from protocol.factorial import (
    Certified,
    Certify,
    ClassFold,
    EditorArm,
    EditorArms,
    EditorCoins,
    FactorialPlan,
    PhaseDone,
    PhaseStopped,
    PlanFactorial,
    RenderEdits,
    RunPhase,
)
from protocol.factorial_rows import (
    FactorialEditRow,
    FactorialRunRow,
    FactorialScheduleRow,
    PairRow,
)
from protocol.keys import phase_key
from protocol.ledger import Record, Select, Where, rows_of
from protocol.rollout import Answered, Missed, Rollout, out_of_budget, reasons_of
from protocol.row import Row
from protocol.rows import OutcomeRow
from protocol.settings import GateSettings

__all__ = ["Desk", "certify", "editor_arms", "plan_factorial", "run_phase"]

log = structlog.get_logger("gate")

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
class _Class:
    """A class as the ledger has it. edits: all rows, in canonical order; log: its pairs."""

    schedule: Schedule
    edits: tuple[FactorialEditRow, ...]
    pairs: tuple[PairRow, ...]

    def texts(self, born_by: int) -> tuple[FactorialEditRow, ...]:
        """The edits of the document, sentinel aside, that were born by then."""
        return tuple(row for row in self.edits if row.born <= born_by and not row.sentinel)

    def after(self, phase: int, settings: GateSettings) -> tuple[FactorialEdit, ...]:
        """The edits after so many phases, later ones as they were born. Raises OpenPairs."""
        log: list[LoggedPair] = [logged(row) for row in self.pairs if row.phase <= phase]
        return course(
            edits_as_born(self.edits),
            log,
            exact_alpha(settings.drop_harm),
            until=phase,
            n_epochs=self.schedule.n_epochs,
        )


async def _class_of(desk: Desk, task_type: str) -> _Class:
    edits = await desk.rows(FactorialEditRow, ("task_type", task_type))
    return _Class(
        schedule_from(await desk.rows(FactorialScheduleRow, ("task_type", task_type))),
        tuple(sorted(edits, key=lambda row: row.position)),
        await desk.rows(PairRow, ("task_type", task_type)),
    )


async def plan_factorial(desk: Desk, request: PlanFactorial) -> FactorialPlan | Refused:
    """The schedule: fixed now, or as it was fixed."""
    try:
        schedule = schedule_of(desk.settings, desk.seed, request.n_epochs, request.units)
    except ScheduleError as error:
        return Refused(what=str(error), remedy="change what it names, in a fresh workspace")
    rows = schedule_rows(schedule)
    before = await desk.rows(FactorialScheduleRow)
    if not before:
        await desk.ledger.ask(Record(rows=(*rows, *sentinel_rows(schedule))))
    elif told := differences(before, rows):
        return Refused(
            what="the factorial schedule is another than the one that the run was begun with",
            remedy="restore the configuration and the data; nothing may be added to a schedule",
            details=told,
        )
    shown = preview(schedule, q_of(desk.settings), exact_alpha(desk.settings.cap))
    return FactorialPlan(
        folds=tuple(
            ClassFold(
                task_type=own.task_type,
                design=tuple(unit.unit_id for unit in own.design),
                pairs=own.pairs,
            )
            for own in schedule.classes
        ),
        n_pairs=schedule.n_pairs,
        draws=schedule.draws,
        rollouts=schedule.rollouts,
        lines=tuple(preview_lines(shown)),
    )


async def editor_arms(desk: Desk, request: EditorCoins) -> EditorArms:
    """The documents of an epoch's editor draws."""
    own = await _class_of(desk, request.base.task_type)
    rows = own.texts(request.epoch - 1)
    names = {row.edit_id for row in rows}
    now = own.after(request.epoch - 1, desk.settings)
    live = [edit for edit in live_edits(now) if edit.edit_id in names]
    on = [
        editor_on(own.schedule.seed, request.epoch, unit_id, live) for unit_id in request.unit_ids
    ]
    skills = await _render(desk, request.scope, request.base, rows, on)
    return EditorArms(
        arms=tuple(
            EditorArm(unit_id=unit_id, skill=skill)
            for unit_id, skill in zip(request.unit_ids, skills, strict=True)
        )
    )


async def _render(
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


# -- a phase ----------------------------------------------------------------------------


async def run_phase(desk: Desk, request: RunPhase) -> PhaseDone | PhaseStopped | Refused:
    """Draw what is not drawn of a class's pairs in a phase."""
    own = await _class_of(desk, request.task_type)
    now = [
        edit for edit in own.after(request.phase - 1, desk.settings) if edit.born <= request.phase
    ]
    told = {"class": request.task_type, "phase": request.phase}
    if not needs_pairs(now):
        log.info("factorial.phase_done", pairs=0, drawn_now=0, void=0, **told)
        return PhaseDone(pairs=0, void=0, drawn_now=0)
    before = {row.pair: row for row in own.pairs if row.phase == request.phase}
    wanted = phase_pairs(own.schedule, request.task_type, request.phase)
    rows = opened(own.schedule.seed, wanted, now, before)
    if not before:
        await desk.ledger.ask(Record(scope=request.scope, rows=rows))
    waiting = [row for row in rows if row.state == "open"]
    lost_before = sum(row.state == "void" for row in rows)
    log.info("factorial.phase", pairs=len(rows), waiting=len(waiting), void=lost_before, **told)
    drawn = await _draw(desk, request, waiting, own.texts(request.phase))
    lost = [one for one in drawn if one.missed]
    stopped = len(drawn) < len(waiting)
    refused = None if stopped else _outage(desk.settings, request, lost, len(rows))
    if stopped:
        return PhaseStopped(drawn_now=len(drawn) - len(lost))
    if refused is not None:
        return refused
    if lost:
        void = tuple(voided(one.row, one.a, one.b) for one in lost)
        await desk.ledger.ask(Record(scope=request.scope, rows=void))
        for row in void:
            tell_pair(row)
    n_void = len(lost) + lost_before
    n_now = len(drawn) - len(lost)
    log.info("factorial.phase_done", pairs=len(rows), drawn_now=n_now, void=n_void, **told)
    return PhaseDone(pairs=len(rows), void=n_void, drawn_now=len(drawn) - len(lost))


async def _draw(
    desk: Desk,
    request: RunPhase,
    waiting: Sequence[PairRow],
    edits: Sequence[FactorialEditRow],
) -> list[DrawnPair]:
    """Every waiting pair, as far as no stop is asked for; whole ones are stored at once."""
    units = {unit.unit_id: unit for unit in request.units}
    arms = [logged(row).coins.on(arm) for row in waiting for arm in ("a", "b")]
    skills = await _render(
        desk, request.scope, request.base, edits, [frozenset(names) for names in arms]
    )
    found = await desk.rows(
        OutcomeRow, ("run_key", f"{phase_key(request.task_type, request.phase)}/*")
    )
    known = known_answers(found)
    drawn: list[DrawnPair] = []

    async def one(place: int, row: PairRow) -> None:
        async with desk.limiter:
            if desk.draining():
                return
            task = PairTask(
                row=row,
                unit=units[row.unit_id],
                skills=(skills[2 * place], skills[2 * place + 1]),
                request=request,
                seed=desk.seed,
                n_tries=1 + desk.settings.missing_retries,
            )
            pair = await draw_pair(desk.roll, task, known)
        whole = answered(row, pair.a, pair.b)
        if whole is not None:
            await desk.ledger.ask(Record(scope=request.scope, rows=(whole,)))
            tell_pair(whole)
        drawn.append(pair)

    async with anyio.create_task_group() as group:
        for place, row in enumerate(waiting):
            group.start_soon(one, place, row)
    return drawn


def _outage(
    settings: GateSettings, request: RunPhase, lost: Sequence[DrawnPair], n_pairs: int
) -> Refused | None:
    """Why the phase is not whole; None: what was lost may be void.

    Any rule will do: coins are fair given all outcomes, so that a loss cannot favour an edit.
    """
    missed = [miss for one in lost for miss in one.missed]
    few = len(lost) <= max(1.0, settings.max_missing_share * n_pairs)
    lasting = all(miss.lasting for miss in missed)
    if not out_of_budget(missed) and (few or lasting):
        return None
    return Refused(
        what=(
            f"{phase_key(request.task_type, request.phase)}: {len(lost)} of {n_pairs} pairs "
            "were not answered in both arms"
        ),
        remedy="mend what the reasons name, then resume; what was answered is kept",
        details=reasons_of(missed),
        passing=True,
    )


# -- the decision -----------------------------------------------------------------------


async def certify(desk: Desk, request: Certify) -> Certified:
    """Decide over all edits of all classes; the same again once it has decided.

    Raises ValueError or OpenPairs if a class has pairs left to draw.
    """
    classes = {base.task_type: await _class_of(desk, base.task_type) for base in request.bases}
    runs = await desk.rows(FactorialRunRow)
    run = runs[0] if runs else await _decide(desk, list(classes.values()))
    skills = []
    for base in request.bases:
        rows = await desk.rows(FactorialEditRow, ("task_type", base.task_type))
        texts = sorted((r for r in rows if not r.sentinel), key=lambda row: row.position)
        adopted = frozenset(row.edit_id for row in texts if row.state == "adopted")
        if adopted:
            skills += await _render(desk, request.scope, base, texts, [adopted])
    return Certified(
        skills=tuple(skills),
        n_edits=run.n_edits,
        adopted=run.adopted,
        sentinels_ok=run.ok,
        sentinel_p=run.sentinel_p,
    )


async def _decide(desk: Desk, classes: Sequence[_Class]) -> FactorialRunRow:
    q, cap = q_of(desk.settings), exact_alpha(desk.settings.cap)
    edits: list[FactorialEdit] = []
    for own in classes:
        _check_whole(own, desk.settings)
        edits += own.after(own.schedule.certification, desk.settings)
    decided = step_up(evidence_of(edits), q, cap)
    sentinels = check_sentinels(edits)
    adopted = decided.adopted if sentinels.ok else ()
    ended = conclude(edits, adopted)
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
    rows = final_rows([row for own in classes for row in own.edits], ended)
    await desk.ledger.ask(Record(rows=(*rows, run)))
    for row in rows:
        tell_edit(row)
    tell_decision(run, adopted)
    return run


def _check_whole(own: _Class, settings: GateSettings) -> None:
    """Raises ValueError if pairs of the last phase were never laid out."""
    last = own.schedule.certification
    (only,) = own.schedule.classes
    laid_out = any(row.phase == last for row in own.pairs)
    if not laid_out and only.pairs[-1] and needs_pairs(own.after(last - 1, settings)):
        raise ValueError(f"{only.task_type}: is decided before its last pairs are drawn")
