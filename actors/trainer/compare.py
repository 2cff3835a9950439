"""Which questions the slow update looks at twice, and what came of it. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from actors.trainer.score import McNemar
from protocol.dataset import ClassWork, Question
from protocol.rollout import Answered, Missed
from protocol.rows import EvaluationRow
from protocol.slow import Change, Compared, change_of

__all__ = ["Judgement", "choose", "compared", "counts", "judge"]


class Judgement(msgspec.Struct, frozen=True):
    """Whether the slow candidate stays, and why in words."""

    keep: bool
    reason: str


def choose(works: Iterable[ClassWork], n: int, seed: int, epoch: int) -> tuple[Question, ...]:
    """At most ``n`` questions of the epoch's design folds, the classes served in turn.

    Within a class by SHA-256 of (seed, epoch, question), so that neither outcomes nor the order
    of the batches decide. Design folds only: what the gate tests on is read by no editor.
    """
    queues = [
        sorted(
            (question for batch in work.batches for question in batch),
            key=lambda question: _rank(seed, epoch, question.question_id),
        )
        for work in sorted(works, key=lambda work: work.task_type)
    ]
    chosen: list[Question] = []
    depth = 0
    while len(chosen) < n and any(depth < len(queue) for queue in queues):
        chosen += [queue[depth] for queue in queues if depth < len(queue)]
        depth += 1
    return tuple(chosen[:n])


def _rank(seed: int, epoch: int, question_id: str) -> str:
    return hashlib.sha256(f"slow/{seed}/{epoch}/{question_id}".encode()).hexdigest()


def compared(
    questions: Sequence[Question],
    before: Sequence[Answered | Missed],
    after: Sequence[Answered | Missed],
    keys: tuple[str, str],
) -> tuple[Compared, ...]:
    """The questions that were answered in both passes; missing is neither right nor wrong."""
    return tuple(
        Compared(
            question=question,
            change=change_of(before=first.right, after=last.right),
            before_key=keys[0],
            after_key=keys[1],
        )
        for question, first, last in zip(questions, before, after, strict=True)
        if isinstance(first, Answered) and isinstance(last, Answered)
    )


def counts(found: Iterable[Compared]) -> Mapping[Change, int]:
    """How many questions fared how."""
    counted: dict[Change, int] = {"regressed": 0, "persistent": 0, "improved": 0, "stable": 0}
    for one in found:
        counted[one.change] += 1
    return counted


def judge(
    fast: EvaluationRow, candidate: EvaluationRow, paired: McNemar, harm_p: float
) -> Judgement:
    """Keep the slow candidate unless val shows harm or its mixed score is lower (6.2).

    paired: candidate over fast; harm is shown if P(Bin(W + L, 1/2) >= L) <= harm_p.
    """
    seen = f"{paired.wins} won, {paired.losses} lost of {paired.pairs} pairs"
    if paired.p_loss <= harm_p:
        return Judgement(keep=False, reason=f"val shows harm: {seen}, p = {paired.p_loss:.3g}")
    if candidate.mixed < fast.mixed:
        lower = f"mixed {candidate.mixed:.4f} against {fast.mixed:.4f}"
        return Judgement(keep=False, reason=f"the mixed score on val is lower: {lower}; {seen}")
    return Judgement(keep=True, reason=f"no harm on val: {seen}, p = {paired.p_loss:.3g}")
