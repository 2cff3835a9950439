"""Adds the events of a log up to what an operator wants to know. Pure: time comes with the event.

Fed by the running program with its own events, or by a reader with the lines of a log file: what
is shown of a run that lives and of one that is over is made by the same sums. It must take
whatever it is given: a log may hold anything, and no line of it may end a run.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from statistics import quantiles

import msgspec

from actors.monitor.pairs import Counted, Pairs
from actors.monitor.phases import Phase, PhaseSeen, key_of
from actors.trainer.score import wilson
from protocol.keys import step_key

__all__ = ["LAST_EVENTS", "Board", "Progress", "number", "text"]

Event = Mapping[str, object]

_RATE_S = 60.0
_WINDOW = 4096
_FIRST_TOKENS = 512
_MOST_PHASES = 256
_MOST_RESULTS = 200_000
_MOST_PATH = 256
LAST_EVENTS = 40

NEWS = frozenset(
    {
        "actor.crashed", "actor.poison", "actor.restarting", "cache.available_again",
        "cache.unavailable", "checkpoint.fallback", "config.change_accepted", "control.concurrency",
        "control.paused", "control.resumed", "control.stop", "epoch.done", "epoch.start",
        "evaluation.done", "evaluation.unusable", "evolver.call_failed", "factorial.decided",
        "factorial.phase", "factorial.phase_done", "factorial.schedule", "gate.decision",
        "heartbeat", "llm.breaker_closed", "llm.breaker_half_open", "llm.breaker_open",
        "llm.endpoint_back", "llm.endpoint_out", "llm.limit_cut", "llm.paused", "llm.resumed",
        "pass.unreadable", "run.ended",
        "run.resumed", "run.started",
        "runtime.blocked", "runtime.checkpoint", "runtime.draining", "runtime.gave_up",
        "runtime.stalled", "runtime.stopped", "slow_update.done", "step.no_proposal",
    }
)  # fmt: skip
"""Events that change what is going on: shown as they come, and kept as the last ones."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far everything is. All counts are of this process, save the steps.

    phase: ``steps``, ``pairs`` or ``certification pairs``, or the pass. done, planned: steps of
    the epoch, pairs of the phase whoever drew them, or questions of the pass; planned 0: unknown.
    right of answered, accuracy, interval (95 %): of the pass, of all questions of the epoch's
    steps so far, or of all arms of the phase's pairs; None before the first answer. missing: of
    pairs those that are void. rate: rollouts a second,
    over the last minute. cache: share of chats that were answered from it; retries: share of
    tries that were not a call's first. first_token_s: median and 95th percentile of the last
    calls. eta_s: of the phase, run_eta_s: of the run; None: not known yet.
    """

    phase: str
    epoch: int
    epochs: int
    done: int
    planned: int
    right: int
    answered: int
    missing: int
    rollouts: int
    rate: float
    accuracy: float | None = None
    interval: tuple[float, float] | None = None
    first_token_s: tuple[float, float] | None = None
    cache: float | None = None
    retries: float | None = None
    eta_s: float | None = None
    run_eta_s: float | None = None
    phases: tuple[PhaseSeen, ...] = ()


def number(event: Event, key: str) -> float:
    """A number of an event; 0 if there is none."""
    value = event.get(key)
    return float(value) if isinstance(value, int | float) and abs(value) < 1e15 else 0.0


def text(event: Event, key: str) -> str:
    """A text of an event; empty if there is none."""
    value = event.get(key)
    return value if isinstance(value, str) else ""


class Board:
    """The sums. epochs: planned in all, 0: unknown."""

    def __init__(self, epochs: int = 0) -> None:
        self.epochs = epochs
        self.epoch = 0
        self.phases: dict[str, Phase] = {}
        self.finished = 0
        """Things that came to an end: chats, rollouts, steps. A change means that it moves."""
        self.finished_at: float | None = None
        self.rollouts = 0
        self.counts: Counter[tuple[str, str]] = Counter()
        """Events by (name, what): outcomes of calls and rollouts, verdicts, restarts by actor."""
        self.news: deque[Event] = deque(maxlen=LAST_EVENTS)
        self.actors: tuple[Mapping[str, object], ...] = ()
        self._recent: deque[float] = deque(maxlen=_WINDOW)
        self._first_tokens: deque[float] = deque(maxlen=_FIRST_TOKENS)
        self._since: float | None = None
        self._epoch_begun: float | None = None
        self._epoch_seconds: list[float] = []
        self._steps_begun: float | None = None
        self._steps: dict[str, tuple[int, int]] = {}  # class -> steps, done before this process
        self._steps_done = 0
        self._batches: Counter[str] = Counter()
        self._pairs = Pairs()
        self._handlers = {
            "class.planned": self._class_planned,
            "epoch.done": self._epoch_done,
            "epoch.start": self._epoch_start,
            "factorial.pair": self._pair,
            "factorial.phase": self._pair_phase,
            "factorial.phase_done": self._pair_phase_done,
            "gate.decision": self._gate_decision,
            "gate.look": self._gate_look,
            "llm.attempt_failed": self._attempt_failed,
            "llm.call": self._call,
            "pass.done": self._pass_done,
            "pass.start": self._pass_start,
            "rollout.done": self._rollout,
            "runtime.stats": self._stats,
            "step.done": self._step_done,
        }

    def take(self, event: Event, now: float) -> None:
        """Add an event. now: seconds, of any clock that goes on."""
        name = text(event, "event")
        if self._since is None:
            self._since = now
        if name in NEWS and event.get("repeated") is not True:
            self.news.append(event)
        if name in ("actor.restarting", "actor.crashed"):
            self.counts[name, text(event, "actor")] += 1
        handler = self._handlers.get(name)
        if handler is not None:
            handler(event, now)

    # -- what is shown ------------------------------------------------------------------

    def progress(self, now: float) -> Progress | None:
        """How far everything is; None while nothing is at work."""
        open_ = list(self.phases.values())
        paired = self._pairs.seen(now)
        if not open_ and not paired:
            return None
        passes = [phase for phase in open_ if not phase.is_step]
        if passes:
            told = self._of_passes(passes)
        else:
            told = self._pairs.counted(self.epoch, now) if self._pairs.planned else self._of_steps()
        elapsed, left = max(0.0, now - told.begun), told.planned - told.done
        eta = elapsed / told.fresh * left if told.fresh and left >= 0 else None
        calls, tries = self._calls(), self._tries()
        return Progress(
            phase=told.name,
            epoch=self.epoch,
            epochs=self.epochs,
            done=told.done,
            planned=told.planned,
            right=told.right,
            answered=told.answered,
            missing=told.missing,
            rollouts=self.rollouts,
            rate=round(self.rate(now), 3),
            accuracy=round(told.right / told.answered, 4) if told.answered else None,
            interval=_interval(told.right, told.answered),
            first_token_s=self.first_tokens(),
            cache=round(self.counts["llm.call", "cached"] / calls, 4) if calls else None,
            retries=round(self.counts["tries", "failed"] / tries, 4) if tries else None,
            eta_s=None if eta is None else round(eta, 1),
            run_eta_s=self._run_eta(now),
            phases=(*(phase.seen(now) for phase in open_), *paired),
        )

    def rate(self, now: float) -> float:
        """Rollouts a second over the last minute, or since the beginning if that is shorter."""
        while self._recent and self._recent[0] < now - _RATE_S:
            self._recent.popleft()
        since = now if self._since is None else self._since
        return len(self._recent) / min(_RATE_S, max(1.0, now - since))

    def first_tokens(self) -> tuple[float, float] | None:
        """Median and 95th percentile, seconds."""
        times = self._first_tokens
        if len(times) < 2:
            return (times[0], times[0]) if times else None
        cuts = quantiles(times, n=20, method="inclusive")
        return round(cuts[9], 3), round(cuts[18], 3)

    def _calls(self) -> int:
        return sum(n for (name, _), n in self.counts.items() if name == "llm.call")

    def _tries(self) -> int:
        return self.counts["tries", "failed"] + self.counts["llm.call", "ok"]

    def _of_passes(self, passes: list[Phase]) -> Counted:
        missing = sum(phase.count("missing") for phase in passes)
        answered = sum(len(phase.results) for phase in passes) - missing
        known = all(phase.planned for phase in passes)
        return Counted(
            name=", ".join(phase.seen(0).label for phase in passes),
            done=answered,
            planned=sum(phase.planned for phase in passes) if known else 0,
            right=sum(phase.count("right") for phase in passes),
            answered=answered,
            missing=missing,
            begun=min(phase.begun for phase in passes),
            fresh=answered,
        )

    def _of_steps(self) -> Counted:
        missing = self._batches["missing"]
        answered = self._batches["right"] + self._batches["wrong"]
        for phase in self.phases.values():
            missing += phase.count("missing")
            answered += phase.count("right") + phase.count("wrong")
        right = self._batches["right"] + sum(p.count("right") for p in self.phases.values())
        # a resumed epoch has fewer steps left than planned: only those are counted and timed
        planned = sum(max(0, steps - before) for steps, before in self._steps.values())
        begun = min((p.begun for p in self.phases.values()), default=0.0)
        if self._steps_begun is not None:
            begun = self._steps_begun
        done = self._steps_done
        return Counted("steps", done, planned, right, answered, missing, begun, fresh=done)

    def _run_eta(self, now: float) -> float | None:
        """From the epochs that this process has seen whole; None before the first."""
        if not self._epoch_seconds or not self.epochs or self._pairs.planned:
            return None  # with pairs the last epoch is by far the longest
        mean = sum(self._epoch_seconds) / len(self._epoch_seconds)
        left = mean * max(0, self.epochs - self.epoch)
        if self._epoch_begun is not None:
            left += max(0.0, mean - (now - self._epoch_begun))
        return round(left, 1)

    # -- events -------------------------------------------------------------------------

    def _moved(self, now: float) -> None:
        self.finished += 1
        self.finished_at = now

    def _phase(self, run_key: str, now: float) -> Phase | None:
        """The open phase, or a new one; None for a log that opens phases without end."""
        key = key_of(run_key)
        if key not in self.phases:
            if not key or len(self.phases) >= _MOST_PHASES:
                return None
            self.phases[key] = Phase(key, now)
        return self.phases[key]

    def _of_class(self, event: Event, now: float) -> Phase | None:
        """The step that an event belongs to by its scope: of ``epoch``, ``class`` and ``step``."""
        name, step, epoch = text(event, "class"), number(event, "step"), number(event, "epoch")
        if not name or step < 1:
            return None
        return self._phase(step_key(int(epoch), name, int(step)), now)

    def _epoch_start(self, event: Event, now: float) -> None:
        self.epoch = int(number(event, "epoch"))
        self._epoch_begun = now
        self._steps_begun = None
        self._steps.clear()
        self._steps_done = 0
        self._batches.clear()
        self._pairs.clear()
        self.phases.clear()

    def _epoch_done(self, event: Event, now: float) -> None:
        if self._epoch_begun is not None and self.epoch == int(number(event, "epoch")):
            self._epoch_seconds.append(now - self._epoch_begun)
        self._epoch_begun = None
        self._pairs.clear()
        self.phases.clear()
        self._moved(now)

    def _class_planned(self, event: Event, now: float) -> None:
        if len(self._steps) < _MOST_PHASES:
            planned = int(number(event, "steps")), int(number(event, "done"))
            self._steps[text(event, "class")] = planned
        if event.get("pairs") is not None:
            epoch = int(number(event, "epoch"))
            self._pairs.plan(epoch, text(event, "class"), int(number(event, "pairs")))
        if self._steps_begun is None:
            self._steps_begun = now

    def _pass_start(self, event: Event, now: float) -> None:
        run_key = text(event, "run_key")
        self.phases.pop(key_of(run_key), None)  # begun anew
        phase = self._phase(run_key, now)
        if phase is not None:
            phase.planned = int(number(event, "planned"))

    def _pass_done(self, event: Event, now: float) -> None:
        phase = self.phases.get(key_of(text(event, "run_key")))
        if phase is None:
            return
        if phase.is_step:
            phase.doing = "editing"
        else:
            del self.phases[phase.key]
        self._moved(now)

    def _rollout(self, event: Event, now: float) -> None:
        self._moved(now)
        self.rollouts += 1
        self._recent.append(now)
        outcome, run_key = text(event, "outcome"), text(event, "run_key")
        self.counts["rollout.done", outcome] += 1
        if run_key.startswith("factorial/"):
            self._pairs.rollout(run_key, outcome)
            return
        if run_key.startswith("baseline/"):
            phase = self._of_class(event, now)
        else:
            phase = self._phase(run_key, now)
        if phase is None:
            return
        phase.rollouts += 1
        own = not phase.is_step or run_key == f"{phase.key}/rollout"
        if own and len(phase.results) < _MOST_RESULTS:
            phase.results[text(event, "question_id")] = outcome
        elif not own:
            phase.doing = "gate"

    def _pair_phase(self, event: Event, now: float) -> None:
        pairs, waiting, void = (int(number(event, key)) for key in ("pairs", "waiting", "void"))
        phase, name = int(number(event, "phase")), text(event, "class")
        self._pairs.begin(phase, name, (pairs, waiting, void), now)

    def _pair(self, event: Event, now: float) -> None:
        self._moved(now)
        state = text(event, "state")
        self.counts["factorial.pair", state] += 1
        self._pairs.pair(int(number(event, "phase")), text(event, "class"), state)

    def _pair_phase_done(self, event: Event, now: float) -> None:
        self._moved(now)
        phase, pairs = int(number(event, "phase")), int(number(event, "pairs"))
        self._pairs.end(phase, text(event, "class"), pairs)

    def _gate_look(self, event: Event, now: float) -> None:
        phase = self._phase(text(event, "run_key"), now)
        if phase is None:
            return
        phase.doing = "gate"
        phase.units, phase.n_units = int(number(event, "units")), int(number(event, "n_units"))
        phase.wins, phase.losses = int(number(event, "wins")), int(number(event, "losses"))
        phase.accept_from = number(event, "accept_from")
        if len(phase.path) < _MOST_PATH:
            phase.path.append(number(event, "e"))
        self._moved(now)

    def _gate_decision(self, event: Event, now: float) -> None:
        self.counts["gate.decision", text(event, "verdict")] += 1
        self._moved(now)

    def _step_done(self, event: Event, now: float) -> None:
        self._moved(now)
        self._steps_done += 1
        phase = self._of_class(event, now)
        if phase is not None:
            self._batches.update(phase.results.values())
            del self.phases[phase.key]

    def _call(self, event: Event, now: float) -> None:
        self._moved(now)
        self.counts["llm.call", text(event, "outcome")] += 1
        first = number(event, "first_token_s")
        if text(event, "outcome") == "ok" and first > 0:
            self._first_tokens.append(first)

    def _attempt_failed(self, event: Event, now: float) -> None:
        self.counts["llm.attempt_failed", text(event, "kind")] += 1
        self.counts["tries", "failed"] += 1

    def _stats(self, event: Event, now: float) -> None:
        told = event.get("actors")
        if isinstance(told, list | tuple):
            self.actors = tuple(one for one in told if isinstance(one, Mapping))


def _interval(right: int, answered: int) -> tuple[float, float] | None:
    if not answered:
        return None
    low, high = wilson(right, answered)
    return round(low, 4), round(high, 4)
