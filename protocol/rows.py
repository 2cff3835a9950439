"""The tables of ``run.db``.

A row type *is* a table: its fields are the columns (scalars only), ``TABLE`` its
name and ``KEY`` its primary key. Writing a row that exists replaces it, so that a
repeated write changes nothing. Every row that belongs to a pass has a ``run_key``
(``protocol.keys``): a step that runs again first deletes what lies under its own.
"""

from __future__ import annotations

from typing import ClassVar

from protocol.documents import Package
from protocol.factorial_rows import (
    FactorialEditRow,
    FactorialRunRow,
    FactorialScheduleRow,
    PairRow,
)
from protocol.redraws import RedrawRow
from protocol.row import Row

__all__ = [
    "AnyRow",
    "AttemptRow",
    "BaselineRow",
    "DecisionRow",
    "DiagnosisRow",
    "DocumentRow",
    "EditRow",
    "EpochRow",
    "EvaluationRow",
    "OutcomeRow",
    "RejectedRow",
    "SlowRow",
    "StepRow",
    "TraceRow",
]


class OutcomeRow(Row, frozen=True, kw_only=True, tag=True):
    """One question in one pass. outcome: ``right``, ``wrong`` or ``missing``.

    forced_by: as of ``Answered``. bad_calls: wrong or refused ones; unreadable: replies that were
    no action; repeated: calls made before; dropped: observations left out for want of room.
    """

    TABLE: ClassVar[str] = "outcomes"
    KEY: ClassVar[tuple[str, ...]] = ("run_key", "question_id")

    run_key: str
    question_id: str
    video_id: str
    task_type: str
    outcome: str
    letter: str | None
    submitted: str
    confidence: float
    stop: str
    missing_kind: str | None
    detail: str
    n_steps: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    skill_hash: str
    prompts_version: str
    salt: str
    forced_by: str = ""
    bad_calls: int = 0
    unreadable: int = 0
    repeated: int = 0
    dropped: int = 0


class TraceRow(Row, frozen=True, kw_only=True, tag=True):
    """One step of one rollout (row P0-2), as ``Step``. node_ids, flags: JSON lists."""

    TABLE: ClassVar[str] = "traces"
    KEY: ClassVar[tuple[str, ...]] = ("run_key", "question_id", "step")

    run_key: str
    question_id: str
    step: int
    thought: str
    tool: str | None
    arguments: str
    observation: str
    raw: str
    node_ids: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    notice: str = ""
    flags: str = "[]"
    dropped: int = 0


class DiagnosisRow(Row, frozen=True, kw_only=True, tag=True):
    """What the judge found for one wrong answer.

    missed_nodes: a JSON list of node ids; grades: a JSON list of ``CallGrade``.
    """

    TABLE: ClassVar[str] = "diagnoses"
    KEY: ClassVar[tuple[str, ...]] = ("run_key", "question_id")

    run_key: str
    question_id: str
    error_type: str
    subtype: str | None
    cause: str | None
    degraded: bool
    finding: str
    rule: str
    missed_nodes: str
    grades: str


class EditRow(Row, frozen=True, kw_only=True, tag=True):
    """One proposed edit and its fate. support: a JSON list of question ids.

    op: an edit's; ``note``: an appendix note (position after the edits); ``consolidate``: the
    compacted appendix; ``momentum``: a momentum region, or one rule of it that is tested for
    itself (``protocol.factorial``), or that was refused. document: ``skill``, ``system`` or a
    tool's name; task_type is empty where it is no skill.
    """

    TABLE: ClassVar[str] = "edits"
    KEY: ClassVar[tuple[str, ...]] = ("run_key", "position")

    run_key: str
    position: int
    task_type: str
    op: str
    target: str
    content: str
    support: str
    reason: str
    status: str
    detail: str
    document: str = "skill"


class DecisionRow(Row, frozen=True, kw_only=True, tag=True):
    """One gate decision, as ``Decision``. looks: a JSON list of ``Look``; stages: of ``Stage``.

    snapshot_hash, prompts_version, generation: the snapshot that the first stage was tested on;
    snapshot_hash is the skill's, or of all skills where the agent chooses (empty: none was read).
    """

    TABLE: ClassVar[str] = "decisions"
    KEY: ClassVar[tuple[str, ...]] = ("run_key",)

    run_key: str
    epoch: int
    step: int
    task_type: str
    current_hash: str
    candidate_hash: str
    verdict: str
    reason: str
    alpha: float
    n_units: int
    evaluated: int
    wins: int
    losses: int
    ties: int
    missing: int
    e_value: float
    p_gate: float
    lower_bound: float | None
    looks: str
    in_sample: bool
    rollouts: int
    snapshot_hash: str = ""
    prompts_version: str = ""
    generation: int = 0
    seed_draw: bool = False
    baseline_rollouts: int = 0
    stages: str = "[]"


class RejectedRow(Row, frozen=True, kw_only=True, tag=True):
    """The rejected ledger: a candidate that the gate did not take.

    edits: a JSON list of ``Edit``; notes: a JSON list of the appendix notes beside them.
    document: as of ``EditRow``; wins and losses of a slow candidate are questions of val.
    """

    TABLE: ClassVar[str] = "rejected"
    KEY: ClassVar[tuple[str, ...]] = ("run_key",)

    run_key: str
    task_type: str
    candidate_hash: str
    edits: str
    notes: str
    verdict: str
    e_value: float
    wins: int
    losses: int
    document: str = "skill"


class StepRow(Row, frozen=True, kw_only=True, tag=True):
    """A step that is whole: written last, so that its presence means done.

    editor_calls: chats with the editor, re-asks included; parse_failures: replies among them
    that could not be read.
    """

    TABLE: ClassVar[str] = "steps"
    KEY: ClassVar[tuple[str, ...]] = ("run_key",)

    run_key: str
    epoch: int
    step: int
    task_type: str
    skill_before: str
    skill_after: str
    planned: int
    right: int
    missing: int
    defects: int
    lapses: int
    degraded: int
    result: str
    edit_budget: int
    editor_calls: int
    parse_failures: int


class DocumentRow(Row, frozen=True, kw_only=True, tag=True):
    """Every skill text that a run saw, by content; never deleted."""

    TABLE: ClassVar[str] = "documents"
    KEY: ClassVar[tuple[str, ...]] = ("hash",)

    hash: str
    task_type: str
    text: str


class EvaluationRow(Row, frozen=True, kw_only=True, tag=True):
    """A package on a pool. kind: ``seed``, ``fast``, ``slow_candidate``, ``final``, ``best_hard``.

    ``final`` is the package that stands at the end of an epoch: exactly one row (row P2-5).
    soft and mixed are means over the planned questions that are not missing.
    outcomes_key: the pass whose outcomes were counted; another row's where the same package was
    evaluated before.
    """

    TABLE: ClassVar[str] = "evaluations"
    KEY: ClassVar[tuple[str, ...]] = ("run_key",)

    run_key: str
    epoch: int
    pool: str
    kind: str
    skills_version: str
    prompts_version: str
    planned: int
    right: int
    missing: int
    soft: float
    mixed: float
    outcomes_key: str

    @property
    def package(self) -> Package:
        """What was evaluated."""
        return Package(skills=self.skills_version, prompts=self.prompts_version)


class SlowRow(Row, frozen=True, kw_only=True, tag=True):
    """An epoch's slow update. result: ``kept``, ``dropped``, ``nothing`` (no candidate) or ``off``.

    wins, losses: questions of val right only under the candidate, only under the fast package;
    p_harm: P(Bin(wins + losses, 1/2) >= losses). reason: why, in words. *_mixed: on val.
    fast_*: the package that it was judged against: the verdict holds for no other.
    regressed to stable: the compared questions of diag. momentum: classes whose region was
    written; prompt_edits: edits applied to the system prompt and the tool prompts. editor_calls,
    parse_failures: as of ``StepRow``.
    """

    TABLE: ClassVar[str] = "slow_updates"
    KEY: ClassVar[tuple[str, ...]] = ("epoch",)

    epoch: int
    result: str
    reason: str
    skills_version: str
    prompts_version: str
    regressed: int
    persistent: int
    improved: int
    stable: int
    momentum: int
    prompt_edits: int
    wins: int
    losses: int
    pairs: int
    p_harm: float
    fast_skills: str
    fast_prompts: str
    fast_mixed: float
    candidate_mixed: float
    editor_calls: int
    parse_failures: int

    @property
    def package(self) -> Package:
        """The candidate; the fast package where there was none."""
        return Package(skills=self.skills_version, prompts=self.prompts_version)


class EpochRow(Row, frozen=True, kw_only=True, tag=True):
    """An epoch that is whole. tests: decisions that spent candidate rollouts.

    sum_alpha bounds the expected false accepts (GATE.md, After). Candidates that were found
    untestable count in it: whether one is, depends on the snapshot, so that leaving them out
    would choose by it. Not covered, and not in the sum: ``seed_draws``, the tests against the
    seed's own answers, which also chose the diag questions.
    """

    TABLE: ClassVar[str] = "epochs"
    KEY: ClassVar[tuple[str, ...]] = ("epoch",)

    epoch: int
    skills_version: str
    prompts_version: str
    tests: int
    accepted: int
    sum_alpha: float
    seed_draws: int
    epochs_since_best_improved: int


class BaselineRow(Row, frozen=True, kw_only=True, tag=True):
    """One draw of one question in a baseline snapshot (row P1-1a).

    generation, confirms: which snapshot of the skill, as of ``GetSnapshot``. source: ``seed`` or
    ``rollout``.
    """

    TABLE: ClassVar[str] = "baseline"
    KEY: ClassVar[tuple[str, ...]] = (
        "task_type",
        "skill_hash",
        "prompts_version",
        "generation",
        "confirms",
        "unit_id",
        "question_id",
        "draw",
    )

    task_type: str
    skill_hash: str
    prompts_version: str
    unit_id: str
    question_id: str
    draw: int
    right: bool
    source: str
    video_id: str = ""
    generation: int = 0
    confirms: str = ""


class AttemptRow(Row, frozen=True, kw_only=True, tag=True):
    """One try of one chat, or of one embedding request (role ``embed``, in no limit).

    call: the cache key, or a hash of the texts; started: UTC, ISO 8601.
    """

    TABLE: ClassVar[str] = "attempts"
    KEY: ClassVar[tuple[str, ...]] = ("call", "attempt", "started")

    call: str
    attempt: int
    started: str
    role: str
    endpoint: str
    outcome: str
    detail: str
    seconds: float
    first_token_s: float | None
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    usd: float | None


AnyRow = (
    OutcomeRow
    | TraceRow
    | DiagnosisRow
    | EditRow
    | DecisionRow
    | RejectedRow
    | StepRow
    | DocumentRow
    | EvaluationRow
    | SlowRow
    | EpochRow
    | BaselineRow
    | AttemptRow
    | FactorialScheduleRow
    | FactorialEditRow
    | PairRow
    | FactorialRunRow
    | RedrawRow
)
