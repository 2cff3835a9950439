"""Questions, frozen pools, pre-flight and the work of one epoch."""

from __future__ import annotations

from typing import ClassVar, Literal

from protocol.base import Message, Refused, Request

__all__ = [
    "ClassCount",
    "ClassWork",
    "DataSummary",
    "DescribeData",
    "EpochPlan",
    "GetPool",
    "KnownOutcome",
    "PlanEpoch",
    "PoolQuestions",
    "PublicQuestion",
    "Question",
    "Unit",
]

Pool = Literal["diag", "val", "test"]


class PublicQuestion(Message, frozen=True, kw_only=True, tag=True):
    """What the agent may see: no gold answer, no question id."""

    video_id: str
    task_type: str
    question: str
    options: tuple[str, ...]


class Question(Message, frozen=True, kw_only=True, tag=True):
    """One multiple-choice question; ``answer`` is the gold letter and stays with us."""

    question_id: str
    video_id: str
    task_type: str
    question: str
    options: tuple[str, ...]
    answer: str
    domain: str | None = None
    sub_category: str | None = None
    duration: str | None = None

    @property
    def public(self) -> PublicQuestion:
        """The question as the agent sees it."""
        return PublicQuestion(
            video_id=self.video_id,
            task_type=self.task_type,
            question=self.question,
            options=self.options,
        )


class Unit(Message, frozen=True, kw_only=True, tag=True):
    """All questions of one class in one video: the gate's atom of evidence."""

    unit_id: str
    video_id: str
    task_type: str
    questions: tuple[Question, ...]


class KnownOutcome(Message, frozen=True, kw_only=True, tag=True):
    """A question's latest known result; missing results are not known.

    confidence: the agent's own, where it is known.
    """

    question_id: str
    right: bool
    confidence: float = 0.5


class ClassCount(Message, frozen=True, kw_only=True, tag=True):
    """A class in the pools, and whether pre-flight lets it train (row P0-3)."""

    task_type: str
    n_diag: int
    n_units: int
    n_val: int
    n_test: int
    trainable: bool
    reason: str


class DataSummary(Message, frozen=True, kw_only=True, tag=True):
    """What is trained on. Fingerprints are SHA-256 over canonical JSON."""

    dataset_fingerprint: str
    pools_sha256: str
    baseline_run_id: str
    n_videos: int
    n_questions: int
    classes: tuple[ClassCount, ...]


class DescribeData(Request[DataSummary], frozen=True, kw_only=True, tag=True):
    """The data as loaded and verified at start."""

    IDEMPOTENT: ClassVar[bool] = True


class PoolQuestions(Message, frozen=True, kw_only=True, tag=True):
    """A pool's questions, ordered by question id."""

    questions: tuple[Question, ...]


class GetPool(Request[PoolQuestions], frozen=True, kw_only=True, tag=True):
    """``diag`` and ``val`` hold trainable classes only; ``test`` is never filtered."""

    IDEMPOTENT: ClassVar[bool] = True

    pool: Pool


class ClassWork(Message, frozen=True, kw_only=True, tag=True):
    """One class in one epoch.

    batches: the design fold's questions, in training order.
    ladder: the units that the gate tests on, not ordered.
    in_sample: the ladder is all units of the class, the shown ones too (GATE.md).
    """

    task_type: str
    batches: tuple[tuple[Question, ...], ...]
    ladder: tuple[Unit, ...]
    in_sample: bool


class EpochPlan(Message, frozen=True, kw_only=True, tag=True):
    """The work of an epoch, classes ordered by name."""

    epoch: int
    classes: tuple[ClassWork, ...]


class PlanEpoch(Request[EpochPlan | Refused], frozen=True, kw_only=True, tag=True):
    """Folds and batches of an epoch, from the latest known outcome of every diag question.

    Refused if a diag question has none: it would be dropped silently otherwise.
    """

    IDEMPOTENT: ClassVar[bool] = True

    epoch: int
    known: tuple[KnownOutcome, ...]
