"""The factorial gate's pairs as they are answered, class by class. Pure, and takes whatever comes.

Only how many: nothing here could say how an edit fares.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from actors.monitor.phases import PhaseSeen, key_of
from protocol.keys import phase_key, slug

__all__ = ["CERTIFY", "PAIRS", "Counted", "Pairs"]

PAIRS, CERTIFY = "pairs", "certification pairs"
_MOST = 256


@dataclass(frozen=True)
class Counted:
    """How far something is. fresh: of ``done``, what this process did since ``begun``."""

    name: str
    done: int
    planned: int
    right: int
    answered: int
    missing: int
    begun: float
    fresh: int


@dataclass
class _Class:
    planned: int
    done: int = 0
    fresh: int = 0
    void: int = 0
    begun: float | None = None
    ended: bool = False
    rollouts: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)


class Pairs:
    """One phase at a time: the epoch's, and after the last epoch's the certification."""

    def __init__(self) -> None:
        self.phase = 0
        self._classes: dict[str, _Class] = {}

    def clear(self) -> None:
        """An epoch begins or ends."""
        self.phase = 0
        self._classes.clear()

    def plan(self, phase: int, name: str, pairs: int) -> None:
        """A class will have so many pairs in this phase."""
        own = self._of(phase, name)
        if own is not None and own.begun is None:
            own.planned = max(0, pairs)

    def begin(self, phase: int, name: str, counts: tuple[int, int, int], now: float) -> None:
        """A class's pairs begin. counts: pairs, waiting, void."""
        own = self._of(phase, name)
        if own is None:
            return
        pairs, waiting, void = (max(0, count) for count in counts)
        own.planned, own.done, own.void = pairs, max(0, pairs - waiting), void
        own.fresh, own.begun, own.ended = 0, now, False

    def pair(self, phase: int, name: str, state: str) -> None:
        """A pair is answered, or lost for good."""
        own = self._of(phase, name)
        if own is None:
            return
        own.done = min(own.planned, own.done + 1)
        own.fresh += 1
        own.void += state == "void"

    def end(self, phase: int, name: str, pairs: int) -> None:
        """A class's phase is whole; a class without live edits has none."""
        own = self._of(phase, name)
        if own is not None:
            own.planned = own.done = max(0, pairs)
            own.ended = True

    def rollout(self, run_key: str, outcome: str) -> None:
        """An arm's question was answered."""
        for name, own in self._classes.items():
            if phase_key(name, self.phase) == key_of(run_key):
                own.rollouts += 1
                own.outcomes[outcome] = own.outcomes.get(outcome, 0) + 1

    def _of(self, phase: int, name: str) -> _Class | None:
        """The class in the phase; a later phase begins with nothing, an earlier one is over."""
        if not name or phase < max(1, self.phase):
            return None
        if phase > self.phase:
            self.phase = phase
            self._classes.clear()
        if name not in self._classes:
            if len(self._classes) >= _MOST:
                return None
            self._classes[name] = _Class(planned=0)
        return self._classes[name]

    # -- what is shown ------------------------------------------------------------------

    @property
    def planned(self) -> int:
        """Pairs of the phase, of all classes; 0: there is none."""
        return sum(own.planned for own in self._classes.values())

    def counted(self, epoch: int, now: float) -> Counted:
        """All classes together."""
        classes = list(self._classes.values())
        right = sum(own.outcomes.get("right", 0) for own in classes)
        return Counted(
            name=PAIRS if self.phase <= epoch else CERTIFY,
            done=sum(own.done for own in classes),
            planned=self.planned,
            right=right,
            answered=right + sum(own.outcomes.get("wrong", 0) for own in classes),
            missing=sum(own.void for own in classes),
            begun=min((own.begun for own in classes if own.begun is not None), default=now),
            fresh=sum(own.fresh for own in classes),
        )

    def seen(self, now: float) -> tuple[PhaseSeen, ...]:
        """The classes whose pairs are being drawn."""
        return tuple(
            PhaseSeen(
                key=phase_key(name, self.phase),
                label=f"{slug(name)} {PAIRS}",
                doing=PAIRS,
                done=own.done,
                planned=own.planned,
                right=own.outcomes.get("right", 0),
                missing=own.void,
                rollouts=own.rollouts,
                seconds=round(max(0.0, now - own.begun), 1),
            )
            for name, own in self._classes.items()
            if own.begun is not None and not own.ended
        )
