"""The factorial gate at work: plans, flips coins, draws pairs, decides.

What it knows lies in the ledger: a pair's coins are there before the pair is drawn, and what an
edit has come to is told anew from its pairs, so that a stopped run draws no coin and asks no
answered question again, and counts nothing twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import structlog

from actors.gate.eprocess import exact_alpha
from actors.gate.factorial.preview import preview, preview_lines
from actors.gate.factorial.schedule import ScheduleError, phase_pairs
from actors.gate.factorial.states import needs_pairs
from actors.gate.factorial_desk import (
    Desk,
    Standing,
    render_prompts,
    render_skill,
    standing_of,
)
from actors.gate.factorial_telling import tell_decision, tell_edit, tell_pair
from actors.gate.levels import q_of
from actors.gate.pair_draws import Arm, DrawnPair, PairTask, draw_pair, known_answers
from actors.gate.phase import (
    answered,
    decision_rows,
    differences,
    editor_on,
    logged,
    opened,
    schedule_of,
    schedule_rows,
    sentinel_rows,
    voided,
)
from protocol.base import Refused
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
    RunPhase,
)
from protocol.factorial_prompts import documents_in
from protocol.factorial_rows import PROMPTS, FactorialRunRow, FactorialScheduleRow, PairRow
from protocol.keys import phase_key
from protocol.ledger import Record
from protocol.rollout import out_of_budget, reasons_of
from protocol.rows import OutcomeRow
from protocol.settings import GateSettings

__all__ = ["Desk", "certify", "editor_arms", "plan_factorial", "run_phase"]

log = structlog.get_logger("gate")


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
    """The documents of an epoch's editor draws.

    Raises OpenPairs or ValueError if a class has pairs of an earlier epoch left to draw.
    """
    run, epoch = await standing_of(desk), request.epoch
    if epoch > 1:
        run.check_whole(epoch - 1)

    def on(scope: str) -> list[frozenset[str]]:
        live = run.live(scope, epoch)
        return [editor_on(run.schedule.seed, epoch, unit_id, live) for unit_id in request.unit_ids]

    name = request.base.task_type
    own, common = run.texts(name, epoch - 1), run.texts(PROMPTS, epoch - 1)
    skills = await render_skill(desk, request.scope, request.base, own, on(name))
    prompts = await render_prompts(desk, request.scope, request.prompts, common, on(PROMPTS))
    drawn = zip(request.unit_ids, skills, prompts, strict=True)
    return EditorArms(arms=tuple(EditorArm(unit_id=u, skill=s, prompts=p) for u, s, p in drawn))


# -- a phase ----------------------------------------------------------------------------


async def run_phase(desk: Desk, request: RunPhase) -> PhaseDone | PhaseStopped | Refused:
    """Draw what is not drawn of a class's pairs in a phase."""
    run = await standing_of(desk)
    if request.phase > 1:
        run.check_whole(request.phase - 1)
    now = run.taking_part(request.task_type, request.phase)
    told = {"class": request.task_type, "phase": request.phase}
    if not needs_pairs(now):
        log.info("factorial.phase_done", pairs=0, drawn_now=0, void=0, **told)
        return PhaseDone(pairs=0, void=0, drawn_now=0)
    place = (request.task_type, request.phase)
    before = {row.pair: row for row in run.pairs if (row.task_type, row.phase) == place}
    wanted = phase_pairs(run.schedule, request.task_type, request.phase)
    rows = opened(run.schedule.seed, wanted, now, before)
    if not before:
        await desk.ledger.ask(Record(scope=request.scope, rows=rows))
    waiting = [row for row in rows if row.state == "open"]
    lost_before = sum(row.state == "void" for row in rows)
    log.info("factorial.phase", pairs=len(rows), waiting=len(waiting), void=lost_before, **told)
    drawn = await _draw(desk, request, waiting, run)
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
    run: Standing,
) -> list[DrawnPair]:
    """Every waiting pair, as far as no stop is asked for; whole ones are stored at once."""
    units = {unit.unit_id: unit for unit in request.units}
    arms = await _arms(desk, request, waiting, run)
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
                arms=(arms[2 * place], arms[2 * place + 1]),
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


async def _arms(
    desk: Desk, request: RunPhase, waiting: Sequence[PairRow], run: Standing
) -> list[Arm]:
    """The documents of arm a and of arm b of every pair in turn."""
    drawn = [logged(row).coins for row in waiting]
    on = [frozenset(pair.on(arm)) for pair in drawn for arm in ("a", "b")]
    own, common = (run.texts(scope, request.phase) for scope in (request.task_type, PROMPTS))
    skills = await render_skill(desk, request.scope, request.base, own, on)
    prompts = await render_prompts(desk, request.scope, request.prompts, common, on)
    return [Arm(skill, own_prompts) for skill, own_prompts in zip(skills, prompts, strict=True)]


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
    """Decide over all edits of all classes and of the prompts; the same again once it has decided.

    Raises ValueError or OpenPairs if a class has pairs left to draw.
    """
    runs = await desk.rows(FactorialRunRow)
    run = runs[0] if runs else await _decide(desk, await standing_of(desk))
    now = await standing_of(desk)
    adopted = frozenset(row.edit_id for row in now.edits if row.state == "adopted")
    last = now.schedule.n_epochs
    skills = []
    for base in request.bases:
        texts = now.texts(base.task_type, last)
        if any(row.edit_id in adopted for row in texts):
            skills += await render_skill(desk, request.scope, base, texts, [adopted])
    common = now.texts(PROMPTS, last)
    (made,) = await render_prompts(desk, request.scope, request.prompts, common, [adopted])
    before = documents_in(request.prompts)
    return Certified(
        skills=tuple(skills),
        prompts=tuple(one for one in documents_in(made) if one not in before),
        n_edits=run.n_edits,
        adopted=run.adopted,
        sentinels_ok=run.ok,
        sentinel_p=run.sentinel_p,
    )


async def _decide(desk: Desk, standing: Standing) -> FactorialRunRow:
    q, cap = q_of(desk.settings), exact_alpha(desk.settings.cap)
    last = standing.schedule.certification
    standing.check_whole(last)
    scopes = (*(own.task_type for own in standing.schedule.classes), PROMPTS)
    edits = [edit for scope in scopes for edit in standing.after(scope, last)]
    born = [row for scope in scopes for row in standing.of(scope)]
    run, rows, adopted = decision_rows(born, edits, q, cap)
    await desk.ledger.ask(Record(rows=(*rows, run)))
    for row in rows:
        tell_edit(row)
    tell_decision(run, adopted)
    return run
