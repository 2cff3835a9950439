"""What is at work at a moment: steps of classes side by side, or passes over a pool. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import msgspec

__all__ = ["Phase", "PhaseSeen", "key_of", "label_of"]

_STEP = re.compile(r"^e(\d+)/([^/]+)/s(\d+)(?:/|$)")
_PASS = re.compile(r"^e(\d+)/([^/]+)/([^/]+)$")


def key_of(run_key: str) -> str:
    """The phase that a ``run_key`` belongs to: a step with all below it, or the pass itself."""
    step = _STEP.match(run_key)
    if step is not None:
        return step[0].rstrip("/")
    if run_key.startswith(("aa/", "factorial/")):  # all comparisons, all pairs of a phase
        return "/".join(run_key.split("/")[:3])
    return run_key


def label_of(key: str) -> str:
    """A phase in words, without its epoch: ``counting-problem step 2``, ``val fast``."""
    step = _STEP.match(key)
    if step is not None:
        return f"{step[2]} step {step[3]}"
    found = _PASS.match(key)
    return f"{found[2]} {found[3]}" if found is not None else key


class PhaseSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A phase at one moment.

    planned: questions of its pass; 0: unknown. rollouts: all of them, the gate's and the
    baseline's too. doing: ``answering``, ``editing`` (diagnosis and proposal) or ``gate``.
    units to accept_from: the last look of the gate; n_units 0: there was none.
    """

    key: str
    label: str
    doing: str
    done: int
    planned: int
    right: int
    missing: int
    rollouts: int
    seconds: float
    units: int = 0
    n_units: int = 0
    wins: int = 0
    losses: int = 0
    e: float = 1.0
    accept_from: float = 0.0
    path: tuple[float, ...] = ()


@dataclass
class Phase:
    """A phase that is open. results: outcome by question, of its own pass only."""

    key: str
    begun: float
    planned: int = 0
    doing: str = "answering"
    rollouts: int = 0
    results: dict[str, str] = field(default_factory=dict)
    units: int = 0
    n_units: int = 0
    wins: int = 0
    losses: int = 0
    accept_from: float = 0.0
    path: list[float] = field(default_factory=list)

    @property
    def is_step(self) -> bool:
        """Whether it is a step of a class."""
        return _STEP.match(self.key) is not None

    def count(self, outcome: str) -> int:
        """Questions that ended so, a later try instead of an earlier one."""
        return sum(1 for one in self.results.values() if one == outcome)

    def seen(self, now: float) -> PhaseSeen:
        """The numbers of this moment; questions that are missing are not done."""
        missing = self.count("missing")
        return PhaseSeen(
            key=self.key,
            label=label_of(self.key),
            doing=self.doing,
            done=len(self.results) - missing,
            planned=self.planned,
            right=self.count("right"),
            missing=missing,
            rollouts=self.rollouts,
            seconds=round(max(0.0, now - self.begun), 1),
            units=self.units,
            n_units=self.n_units,
            wins=self.wins,
            losses=self.losses,
            e=self.path[-1] if self.path else 1.0,
            accept_from=self.accept_from,
            path=tuple(self.path),
        )
