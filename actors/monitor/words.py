"""Lines for people: how far a run is, what it waits for. Pure; one line each, no colours."""

from __future__ import annotations

from datetime import datetime, timedelta

from actors.llm.causes import cause_of
from actors.monitor.board import Progress
from actors.monitor.pairs import CERTIFY, PAIRS
from actors.monitor.phases import PhaseSeen
from actors.monitor.spans import duration
from protocol.llm import EndpointSeen, EndpointsSeen

__all__ = ["endpoint_words", "heartbeat_line", "phase_words", "progress_line", "share"]

_MOST_NAMED = 3
_SIDE_BY_SIDE = ("steps", PAIRS, CERTIFY)  # classes do them beside each other


def share(part: float) -> str:
    """``12%``, ``1.2%``, ``0%``."""
    return f"{part:.1%}" if 0 < part < 0.1 else f"{part:.0%}"


def progress_line(progress: Progress, seen: EndpointsSeen | None) -> str:
    """Everything on one line; what is not known is left out."""
    parts = [_place(progress), _accuracy(progress), _rate(progress.rate)]
    if seen is not None:
        busy = ", ".join(f"{one.name} {one.in_flight}/{one.limit}" for one in seen.endpoints)
        parts.append(f"in flight {busy}" + (f" ({seen.waiting} wait)" if seen.waiting else ""))
    if progress.first_token_s is not None:
        middle, late = progress.first_token_s
        parts.append(f"first token {middle:.2g} s (p95 {late:.2g})")
    if progress.cache:
        parts.append(f"cache {share(progress.cache)}")
    if progress.retries:
        parts.append(f"failed tries {share(progress.retries)}")
    if progress.missing:
        lost = "void" if progress.phase in (PAIRS, CERTIFY) else "missing"
        parts.append(f"{lost} {progress.missing}")
    if seen is not None and seen.usd is not None:
        parts.append(f"${seen.usd:.2f}")
    if progress.eta_s is not None:
        parts.append(f"about {duration(progress.eta_s)} left")
    if progress.run_eta_s is not None:
        parts.append(f"the run {duration(progress.run_eta_s)}")
    return "  ".join(part for part in parts if part)


def _place(progress: Progress) -> str:
    """``ep 1/3  steps 3/18 (counting step 2: gate 12/24, ...)``."""
    epoch = f"{progress.epoch}/{progress.epochs}" if progress.epochs else str(progress.epoch)
    of = f"/{progress.planned}" if progress.planned else ""
    where = f"ep {epoch}  {progress.phase} {progress.done}{of}"
    if progress.phase not in _SIDE_BY_SIDE:
        return where
    named = [phase_words(phase) for phase in progress.phases[:_MOST_NAMED]]
    more = len(progress.phases) - len(named)
    return f"{where} ({', '.join(named)}{f', {more} more' if more > 0 else ''})"


def phase_words(phase: PhaseSeen) -> str:
    """``counting step 2: gate 12/24 e 3.1``."""
    if phase.doing == "gate":
        units = f" {phase.units}/{phase.n_units} e {phase.e:.2g}" if phase.n_units else ""
        return f"{phase.label}: gate{units}"
    if phase.doing == "editing":
        return f"{phase.label}: editing"
    of = f"/{phase.planned}" if phase.planned else ""
    return f"{phase.label}: {phase.done}{of}"


def _accuracy(progress: Progress) -> str:
    if progress.accuracy is None or progress.interval is None:
        return ""
    low, high = progress.interval
    of = f" of {progress.answered}" if progress.phase in _SIDE_BY_SIDE else ""
    return f"acc {progress.accuracy:.1%} [{low:.0%}, {high:.0%}]{of}"


def _rate(rate: float) -> str:
    if rate <= 0:
        return ""
    return f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.1f}/min"


def heartbeat_line(quiet_s: float, seen: EndpointsSeen | None, now: datetime, resume: str) -> str:
    """Why nothing ends, and until when. resume: the command that ends a pause."""
    quiet = f"nothing has finished for {duration(quiet_s)}"
    if seen is None:
        return f"still waiting: {quiet}; the client does not answer (it is restarted or stops)"
    calls = f"{seen.calls} call{'' if seen.calls == 1 else 's'}"
    if seen.paused_by:
        return f"paused by {seen.paused_by}: {calls} in hand or waiting; go on with: {resume}"
    if not seen.calls:
        return f"still waiting: {quiet}, and no call is under way"
    parts = [f"still waiting: {calls}, oldest {_age(seen.oldest_s)}"]
    parts += [words for one in seen.endpoints if (words := endpoint_words(one, now))]
    return ", ".join(parts)


def _age(seconds: float) -> str:
    """To the second as long as that says something."""
    return f"{seconds:.0f} s" if seconds < 600 else duration(seconds)


def endpoint_words(one: EndpointSeen, now: datetime) -> str:
    """What holds an endpoint up; empty: nothing does."""
    cause = "" if one.breaker == "closed" else cause_of(one.last_error)
    why = f": {cause}" if cause else ""
    if one.breaker == "out":
        at = (now + timedelta(seconds=one.opens_in_s)).strftime("%H:%M:%S")
        when = f"at {at}" if one.opens_in_s > 0 else "with the next call"
        return f"endpoint {one.name} is out (it serves nobody), tried again {when}{why}"
    if one.breaker == "half_open":
        return f"endpoint {one.name} is being tried again{why}"
    if one.opens_in_s > 0:
        until = (now + timedelta(seconds=one.opens_in_s)).strftime("%H:%M:%S")
        what = "rests (its breaker is open)" if one.breaker == "open" else "asked to be left alone"
        return f"endpoint {one.name} {what} until {until}{why}"
    if one.breaker == "open":
        return f"endpoint {one.name} rested (its breaker is open), tried with the next call{why}"
    return ""
