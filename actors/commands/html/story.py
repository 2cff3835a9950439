"""What the report tells, as plain data: ``gather`` fills it, the sections show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from actors.commands.diff_text import Line
from actors.factorial_view import EditView, FactorialView
from actors.trainer.score import McNemar
from protocol.documents import Package
from protocol.gate import Look
from protocol.rows import DecisionRow, EditRow, EpochRow, OutcomeRow, SlowRow, StepRow

__all__ = [
    "Candidate",
    "ClassGain",
    "Comparison",
    "Cost",
    "Diagnosed",
    "Endpoint",
    "FactorialStory",
    "Path",
    "Point",
    "Provenance",
    "Questioned",
    "Run",
    "SlowUpdate",
    "Story",
    "TestedEdit",
    "Told",
    "Trouble",
]


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What was trained. state: ``empty``, ``running``, ``stopped`` or ``ended``.

    models: (role in words, model, whether the embedded simulator played it). began, ended: UTC,
    the first and the last call; empty without one. planned_epochs: as configured. changes: of
    settings, made on the way and accepted by name.
    """

    run_id: str
    workspace: str
    state: Literal["empty", "running", "stopped", "ended"]
    why: str
    seed_name: str
    seed: Package
    current: Package
    best: Package
    best_mixed: Package
    epoch: int
    planned_epochs: int
    models: tuple[tuple[str, str, bool], ...]
    facts: tuple[tuple[str, str], ...]
    oracle: bool
    began: str
    ended: str
    changes: tuple[str, ...] = ()


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A package on a pool: a point of a curve. low, high: Wilson's 95 % interval.

    outcomes_key: as of ``EvaluationRow``.
    """

    epoch: int
    pool: str
    kind: str
    package: str
    planned: int
    right: int
    missing: int
    low: float
    high: float
    outcomes_key: str = ""

    @property
    def share(self) -> float:
        """right / planned, in [0, 1]."""
        return self.right / self.planned if self.planned else 0.0


class ClassGain(msgspec.Struct, frozen=True, kw_only=True):
    """A class on a pool under both packages; before and after count right answers of planned."""

    task_type: str
    planned: int
    before: int
    after: int
    paired: McNemar


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The best package against the seed's on one pool. won, lost: question ids."""

    pool: str
    before: Point
    after: Point
    paired: McNemar
    classes: tuple[ClassGain, ...]
    won: tuple[str, ...]
    lost: tuple[str, ...]


class Path(msgspec.Struct, frozen=True, kw_only=True):
    """The e-value over one stage of a test. accepting: the units at which it could accept."""

    name: str
    alpha: float
    n_units: int
    looks: tuple[Look, ...]
    accepting: tuple[int, ...]
    verdict: str
    reason: str


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A step and what became of its candidate.

    decision: None where nothing was tested. evidence_pass: the pass that its questions were
    answered in. diff: current text against the candidate's; empty where a text is not known.
    gain: planted, in accuracy; None where nothing was planted.
    """

    run_key: str
    epoch: int
    step: int
    task_type: str
    result: str
    row: StepRow | None
    decision: DecisionRow | None
    edits: tuple[EditRow, ...]
    paths: tuple[Path, ...]
    diff: tuple[Line, ...]
    evidence_pass: str
    gain: float | None = None
    worth: str = ""


class TestedEdit(msgspec.Struct, frozen=True, kw_only=True):
    """An edit of the factorial gate. diff: what it alone changes; empty where that is not known.

    gain: planted, in accuracy; None where nothing was planted.
    """

    view: EditView
    diff: tuple[Line, ...]
    gain: float | None
    worth: str


class FactorialStory(msgspec.Struct, frozen=True, kw_only=True):
    """What was tested together. drop_harm: the level of drops. origins: edit id by blame key."""

    view: FactorialView
    edits: tuple[TestedEdit, ...]
    drop_harm: float
    origins: Mapping[str, str]


class SlowUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """An epoch's slow update with its edits and what it changed, by document."""

    row: SlowRow
    edits: tuple[EditRow, ...]
    diffs: tuple[tuple[str, tuple[Line, ...]], ...]


class Told(msgspec.Struct, frozen=True):
    """A line of a document and the key of the edit that it comes from; empty: the seed's."""

    text: str
    key: str


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """A document of the best package. why_not: why its origin cannot be told, else empty."""

    name: str
    version: str
    lines: tuple[Told, ...]
    why_not: str = ""


class Diagnosed(msgspec.Struct, frozen=True, kw_only=True):
    """How often the waterfall ended in an error type with a subtype and a cause."""

    error_type: str
    subtype: str
    cause: str
    number: int


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """What a role cost. failed: tries by outcome. first_token_s: the median of the tries."""

    role: str
    endpoints: tuple[str, ...]
    answered: int
    cached: int
    failed: dict[str, int]
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    usd: float | None
    unpriced: int
    first_token_s: float | None


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """By role. embeds: embedding requests beside them, None without one."""

    roles: tuple[Endpoint, ...]
    embeds: Endpoint | None


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong, counted: missing outcomes, the agent's own trouble, edits that failed."""

    answered: int
    missing: dict[str, int]
    agent: dict[str, int]
    edits: dict[str, int]


class Questioned(msgspec.Struct, frozen=True, kw_only=True):
    """A question with its outcomes in every pass. known: its text is at hand.

    seed: the letter and the outcome that the seed's baseline has; None without one.
    """

    question_id: str
    video_id: str
    task_type: str
    pool: str
    known: bool
    text: str
    options: tuple[str, ...]
    gold: str
    seed: tuple[str, bool] | None
    outcomes: tuple[OutcomeRow, ...]


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """Everything but the transcripts. gaps: what could not be read, and what to do about it.

    findings: (run_key, question_id) -> what the judge found, in words. factorial: None in a run
    with the ladder; else candidates are its proposals alone.
    """

    run: Run
    points: tuple[Point, ...]
    epochs: tuple[EpochRow, ...]
    comparisons: tuple[Comparison, ...]
    candidates: tuple[Candidate, ...]
    slow: tuple[SlowUpdate, ...]
    documents: tuple[Provenance, ...]
    diagnosed: tuple[Diagnosed, ...]
    cost: Cost
    trouble: Trouble
    questions: tuple[Questioned, ...]
    findings: Mapping[tuple[str, str], str]
    gaps: tuple[str, ...]
    factorial: FactorialStory | None = None
