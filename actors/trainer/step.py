"""One step of one class: rollouts, diagnosis, proposal, gate (ALGORITHM.md section 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import msgspec
import structlog

from actors.trainer.passes import jobs_for, run_jobs
from actors.trainer.peers import Peers
from actors.trainer.redraws import redraws, to_redraw
from actors.trainer.score import Score, score
from actors.trainer.usable import too_little, unread
from protocol.base import Refused, Scope
from protocol.dataset import ClassWork, Question
from protocol.diagnoser import Diagnose, Diagnosis, degraded_share, route
from protocol.documents import PackageTexts, Skill
from protocol.evolver import Case, Edit, NoProposal, Proposal, Propose
from protocol.gate import Decision, Trial
from protocol.keys import epoch_salt, step_key
from protocol.ledger import DeleteRun, Record
from protocol.redraws import redrawn
from protocol.rollout import Answered, Missed
from protocol.rows import DocumentRow, RejectedRow, StepRow

__all__ = [
    "StepDone",
    "StepPlan",
    "cases_of",
    "diagnose_wrong",
    "editor_away",
    "run_step",
    "silent_judge",
    "tell_step",
    "unjudged",
]

log = structlog.get_logger("trainer")

# One odd reply to the only wrong answer of a step is no sign that the judge is out of order.
_FEWEST_DIAGNOSES = 2
_MOST_REASONS = 5


@dataclass(frozen=True)
class StepPlan:
    """Everything a step depends on; the rest is its own doing.

    step: from 1. edit_budget: the learning rate.
    """

    seed: int
    epoch: int
    step: int
    work: ClassWork
    skill: Skill
    texts: PackageTexts
    edit_budget: int
    max_degraded_share: float
    min_coverage: float
    max_unreadable_share: float

    @property
    def key(self) -> str:
        """The step's run_key."""
        return step_key(self.epoch, self.work.task_type, self.step)

    @property
    def batch(self) -> tuple[Question, ...]:
        """The step's questions."""
        return self.work.batches[self.step - 1]

    @property
    def scope(self) -> Scope:
        """For messages and log lines."""
        return Scope(epoch=self.epoch, step=self.step, task_type=self.work.task_type)


@dataclass(frozen=True)
class StepDone:
    """A step that is whole: the skill that stands now, and its row."""

    skill: Skill
    row: StepRow


async def run_step(peers: Peers, plan: StepPlan) -> StepDone | Refused:
    """Run a step from its beginning; what an earlier try left is deleted first (row P2-3).

    Refused: agent or judge is out of order, or a trajectory is missing; nothing may be learnt
    then, and what was refused for its answers is drawn anew.
    """
    structlog.contextvars.bind_contextvars(**dict(plan.scope.fields()))  # the class's own task
    await peers.ledger.ask(DeleteRun(scope=plan.scope, run_key=plan.key))
    again = await redraws(peers, plan.key)
    results = await _forward(peers, plan, again)
    if refused := too_little(f"{plan.key}/rollout", results, plan.min_coverage):
        return refused
    if refused := unread(f"{plan.key}/rollout", results, plan.max_unreadable_share):
        return await to_redraw(peers, plan.scope, plan.key, again, refused)
    counted = score(results)
    asked = [(question, plan.skill) for question in plan.batch]
    diagnoses = await diagnose_wrong(peers, plan.key, plan.scope, asked, results, again)
    if isinstance(diagnoses, Refused):
        return diagnoses
    silent = silent_judge(plan.key, diagnoses, plan.max_degraded_share)
    if silent is not None:
        return await unjudged(peers, plan.scope, plan.key, again, diagnoses, silent)
    return await _optimise(peers, plan, counted, diagnoses)


async def _forward(peers: Peers, plan: StepPlan, again: int) -> list[Answered | Missed]:
    texts = plan.texts.with_skill(plan.skill)
    salt = redrawn(epoch_salt(plan.seed, plan.epoch), again)
    jobs = jobs_for(plan.batch, texts, f"{plan.key}/rollout", salt, plan.scope)
    return await run_jobs(peers.roll, jobs)


async def diagnose_wrong(
    peers: Peers,
    key: str,
    scope: Scope,
    asked: Sequence[tuple[Question, Skill]],
    results: Sequence[Answered | Missed],
    again: int = 0,
) -> list[Diagnosis] | Refused:
    """Diagnose the wrong answers side by side; order follows the questions.

    asked: each question with the document that it was answered under, below ``key``.
    again: how often that was refused for its replies: the judge, too, is asked anew.
    """
    wrong = [
        (question, skill, result)
        for (question, skill), result in zip(asked, results, strict=True)
        if isinstance(result, Answered) and not result.right
    ]
    found: list[Diagnosis | Refused | None] = [None] * len(wrong)

    async def diagnose(index: int, question: Question, skill: Skill, answer: Answered) -> None:
        found[index] = await peers.diagnoser.ask(
            Diagnose(
                scope=msgspec.structs.replace(scope, question_id=question.question_id),
                run_key=f"{key}/rollout",
                question=question,
                skill=skill,
                letter=answer.letter,
                again=again,
            )
        )

    async with anyio.create_task_group() as group:
        for index, (question, skill, answer) in enumerate(wrong):
            group.start_soon(diagnose, index, question, skill, answer)
    diagnoses: list[Diagnosis] = []
    for item in found:
        if isinstance(item, Refused):
            return item
        assert item is not None, "every diagnosis has a result once its task ended"
        diagnoses.append(item)
    return diagnoses


def silent_judge(
    key: str, diagnoses: Sequence[Diagnosis], max_degraded_share: float
) -> Refused | None:
    """Why nothing may be learnt from these diagnoses; None: it may (row P1-5)."""
    share = degraded_share(diagnoses)
    if share <= max_degraded_share or len(diagnoses) < _FEWEST_DIAGNOSES:
        return None
    unread = [diagnosis for diagnosis in diagnoses if diagnosis.degraded]
    unreached = [d for d in diagnoses if d.cause is None and not d.degraded]
    reasons = Counter(diagnosis.unreached or diagnosis.finding for diagnosis in unreached)
    details = [f"{n} x {reason}" for reason, n in reasons.most_common(_MOST_REASONS)]
    if not unread:
        return Refused(
            what=f"step {key}: the judge gave no answer to {len(unreached)} of "
            f"{len(diagnoses)} wrong answers",
            remedy="mend what the reasons name, then resume; the step begins anew",
            details=tuple(details),
            passing=not any(diagnosis.lasting for diagnosis in unreached),
        )
    return Refused(
        what=f"step {key}: {share:.0%} of the diagnoses are degraded",
        remedy="look at the judge's endpoint and replies (bin/trm ask --role judge), then resume: "
        "the step is drawn anew, and the judge asked anew",
        details=(*details, *(f"{d.question_id}: {d.finding}" for d in unread)),
        passing=bool(unreached) and not any(diagnosis.lasting for diagnosis in unreached),
    )


async def unjudged(
    peers: Peers,
    scope: Scope,
    key: str,
    again: int,
    diagnoses: Sequence[Diagnosis],
    refused: Refused,
) -> Refused:
    """Refuse the step; replies that could not be read are not to be had from the cache again."""
    if any(diagnosis.degraded for diagnosis in diagnoses):
        return await to_redraw(peers, scope, key, again, refused)
    return refused


def editor_away(key: str, proposal: NoProposal) -> Refused | None:
    """Why the step cannot go on without the editor; None: it gave an answer."""
    if not proposal.away:
        return None
    return Refused(
        what=f"step {key}: the editor gave no answer",
        remedy="mend what the reason names, then resume; the step begins anew",
        details=(proposal.detail,),
        passing=proposal.reason == "editor_unreachable",
    )


async def _optimise(
    peers: Peers, plan: StepPlan, counted: Score, diagnoses: Sequence[Diagnosis]
) -> StepDone | Refused:
    """Propose, test, keep or not; the step's row is written last."""
    defects, lapses = (cases_of(plan.key, plan.batch, part) for part in route(diagnoses))
    proposal = await peers.evolver.ask(
        Propose(
            scope=plan.scope,
            run_key=f"{plan.key}/proposal",
            skill=plan.skill,
            defects=defects,
            lapses=lapses,
            edit_budget=plan.edit_budget,
        )
    )
    skill = plan.skill
    if isinstance(proposal, NoProposal):
        if refused := editor_away(plan.key, proposal):
            return refused
        result: str = proposal.reason
        log.info("step.no_proposal", reason=proposal.reason, detail=proposal.detail)
    else:
        decision = await _gate(peers, plan, proposal)
        if isinstance(decision, Refused):
            return decision
        result = decision.verdict
        skill = proposal.candidate if decision.verdict == "accept" else plan.skill
    row = StepRow(
        run_key=plan.key,
        epoch=plan.epoch,
        step=plan.step,
        task_type=plan.work.task_type,
        skill_before=plan.skill.hash,
        skill_after=skill.hash,
        planned=counted.planned,
        right=counted.right,
        missing=counted.missing,
        defects=len(defects),
        lapses=len(lapses),
        degraded=sum(diagnosis.degraded for diagnosis in diagnoses),
        result=result,
        edit_budget=plan.edit_budget,
        editor_calls=proposal.editor_calls,
        parse_failures=proposal.parse_failures,
    )
    await peers.ledger.ask(Record(scope=plan.scope, rows=(row,)))
    tell_step(row)
    return StepDone(skill=skill, row=row)


def tell_step(row: StepRow, **more: int) -> None:
    """A step's one line. more: what its design adds."""
    log.info(
        "step.done",
        right=row.right,
        planned=row.planned,
        missing=row.missing,
        defects=row.defects,
        lapses=row.lapses,
        degraded=row.degraded,
        editor_calls=row.editor_calls,
        unreadable=row.parse_failures,
        result=row.result,
        **more,
    )


def cases_of(
    key: str, questions: Sequence[Question], diagnoses: Sequence[Diagnosis]
) -> tuple[Case, ...]:
    """Diagnosed answers as evidence."""
    by_id = {question.question_id: question for question in questions}
    return tuple(
        Case(run_key=f"{key}/rollout", question=by_id[diagnosis.question_id], diagnosis=diagnosis)
        for diagnosis in diagnoses
    )


async def _gate(peers: Peers, plan: StepPlan, proposal: Proposal) -> Decision | Refused:
    """Test the candidate; both texts and a refusal's evidence are kept for later."""
    candidate = proposal.candidate
    documents = tuple(
        DocumentRow(hash=skill.hash, task_type=plan.work.task_type, text=skill.text)
        for skill in (plan.skill, candidate)
    )
    await peers.ledger.ask(Record(scope=plan.scope, rows=documents))
    decision = await peers.gate.ask(
        Trial(
            scope=plan.scope,
            run_key=plan.key,
            current=plan.skill,
            candidate=candidate,
            prompts=plan.texts.prompts,
            units=plan.work.ladder,
            in_sample=plan.work.in_sample,
            # as they were when the epoch began: classes must not see each other's steps
            others=plan.texts.others(plan.skill),
        )
    )
    if isinstance(decision, Refused):
        return decision
    log.info(
        "gate.decision",
        run_key=plan.key,
        verdict=decision.verdict,
        reason=decision.reason,
        wins=decision.wins,
        losses=decision.losses,
        units=f"{decision.evaluated}/{decision.n_units}",
        missing=decision.missing,
        e=round(decision.e_value, 4),
        p_gate=round(decision.p_gate, 4),
        alpha=decision.alpha,
        lower_bound=None if decision.lower_bound is None else round(decision.lower_bound, 4),
    )
    if decision.verdict == "reject":
        applied: list[Edit] = [r.edit for r in proposal.reports if r.status == "applied"]
        await peers.ledger.ask(
            Record(
                scope=plan.scope,
                rows=(
                    RejectedRow(
                        run_key=plan.key,
                        task_type=plan.work.task_type,
                        candidate_hash=candidate.hash,
                        edits=msgspec.json.encode(applied).decode(),
                        notes=msgspec.json.encode(proposal.notes).decode(),
                        verdict=decision.verdict,
                        e_value=decision.e_value,
                        wins=decision.wins,
                        losses=decision.losses,
                    ),
                ),
            )
        )
    return decision
