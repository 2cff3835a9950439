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


class Decision(Message, frozen=True, kw_only=True, tag=True):
    """The gate's verdict with its evidence.

    reason: which rule decided (``core``, ``endgame``, ``futile_exact``, ``futile_power``, ``harm``,
        ``guardrail``, ``missing``, ``end``).
    lower_bound: lower confidence bound of the gain for an accepted edit, in [-1, 1].
    rollouts: candidate rollouts spent.
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


class Trial(Request[Decision | Refused], frozen=True, kw_only=True, tag=True):
    """Test a candidate against the current skill on these units.

    others: the package's other skills, the same for both arms.
    Refused: the snapshot does not cover a unit (row fail-loud).
    """

    IDEMPOTENT: ClassVar[bool] = True

    run_key: str
    current: Skill
    candidate: Skill
    prompts: Prompts
    units: tuple[Unit, ...]
    in_sample: bool
    others: tuple[Skill, ...] = ()


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
    """Fold an epoch's candidate-arm outcomes into the unit EMA, once (row W-5)."""

    IDEMPOTENT: ClassVar[bool] = True

    epoch: int
