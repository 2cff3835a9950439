"""Whether an edit stays: a sequential paired test on the class's ladder."""

from __future__ import annotations

from typing import ClassVar, Literal

from protocol.base import Message, Refused, Request
from protocol.dataset import Unit
from protocol.documents import Prompts, Skill

__all__ = [
    "Decision",
    "GetPower",
    "LadderRefreshed",
    "LadderSize",
    "Look",
    "Power",
    "PowerTable",
    "RefreshLadder",
    "Stage",
    "Trial",
    "Verdict",
]

Verdict = Literal["accept", "reject", "untestable", "undecided"]


class Look(Message, frozen=True, kw_only=True, tag=True):
    """The counts after a block, cumulative; e is the e-value there."""

    units: int
    wins: int
    losses: int
    ties: int
    missing: int
    e: float


class Stage(Message, frozen=True, kw_only=True, tag=True):
    """What one stage of a test saw, by itself; fields as of ``Decision``.

    alpha: the stage's own level. drawn: baseline rollouts run for it now.
    """

    verdict: Verdict
    reason: str
    alpha: float
    evaluated: int
    wins: int
    losses: int
    ties: int
    missing: int
    e_value: float
    p_gate: float
    lower_bound: float | None
    looks: tuple[Look, ...]
    seed_draw: bool
    drawn: int
    rollouts: int


class Decision(Message, frozen=True, kw_only=True, tag=True):
    """The gate's verdict with its evidence.

    reason: which rule decided (``core``, ``endgame``, ``futile_exact``, ``futile_power``, ``harm``,
        ``guardrail``, ``missing``, ``end``, ``identical``).
    alpha: bounds the chance that a candidate that is no better was accepted, over both stages
        where there are two. It is proven for a snapshot drawn without looking; see seed_draw.
    evaluated to missing, lower_bound, looks: of the stage that decided.
    e_value, p_gate: of the whole test; accepted is what has p_gate <= alpha and no guardrail.
    lower_bound: lower confidence bound of the gain for an accepted edit, in [-1, 1].
    rollouts: candidate rollouts spent. baseline_rollouts: those of the current text.
    stages: what each stage saw where the profile has two; empty where it has one.
    generation: which snapshot of the current skill the first stage was tested on.
    seed_draw: that snapshot holds the seed's own answers, which also chose the diag questions:
        alpha is then the nominal level of a test that is easier to pass (with two stages it is
        the second's level, which holds).
    """

    verdict: Verdict
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
    looks: tuple[Look, ...]
    in_sample: bool
    rollouts: int
    baseline_rollouts: int = 0
    stages: tuple[Stage, ...] = ()
    generation: int = 0
    seed_draw: bool = False


class Trial(Request[Decision | Refused], frozen=True, kw_only=True, tag=True):
    """Test a candidate against the current skill on these units.

    others: the package's other skills, the same for both arms.
    null_index: given, the trial is a null comparison: the candidate is the current text, its
        draws are told from those of other null comparisons by this index. Nothing is recorded,
        epoch and step are not needed; run_key must be its own (``keys.null_key``).
    null_generation: which snapshot a null comparison is made with; None: the one in force.
    Refused: the snapshot does not cover a unit (row fail-loud), or an outage.
    """

    IDEMPOTENT: ClassVar[bool] = True

    run_key: str
    current: Skill
    candidate: Skill
    prompts: Prompts
    units: tuple[Unit, ...]
    in_sample: bool
    others: tuple[Skill, ...] = ()
    null_index: int | None = None
    null_generation: int | None = None


class Power(Message, frozen=True, kw_only=True, tag=True):
    """What a class's ladder can see: gains are shares of units, None if out of reach."""

    task_type: str
    n_units: int
    n_wrong: int
    alpha: float
    testable: bool
    gain_50: float | None
    gain_80: float | None


class PowerTable(Message, frozen=True, kw_only=True, tag=True):
    """One row per class, in the order asked."""

    classes: tuple[Power, ...]


class LadderSize(Message, frozen=True, kw_only=True, tag=True):
    """A class's ladder before spending: units, and how many are wrong in the baseline."""

    task_type: str
    n_units: int
    n_wrong: int


class GetPower(Request[PowerTable], frozen=True, kw_only=True, tag=True):
    """The smallest gains that would be accepted with probability .5 and .8."""

    IDEMPOTENT: ClassVar[bool] = True

    ladders: tuple[LadderSize, ...]


class LadderRefreshed(Message, frozen=True, kw_only=True, tag=True):
    """How many units' difficulty the refresh moved."""

    units: int


class RefreshLadder(Request[LadderRefreshed], frozen=True, kw_only=True, tag=True):
    """Observe an epoch, once (row W-5).

    Its candidate-arm outcomes and the snapshots that it retired are folded into the unit EMA;
    a snapshot that turned too many candidates down is replaced.
    """

    IDEMPOTENT: ClassVar[bool] = True

    epoch: int
