"""What the log says of endpoints: a line for every change, with its cause and what follows.

A change belongs to an endpoint, not to the question whose call happened to meet it: no line
carries a scope. Never decides anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import structlog

from actors.llm.causes import address_of, cause_of, remedy_of
from actors.llm.states import EndpointState
from actors.places import as_called
from protocol.llm import Role

__all__ = [
    "tell_back",
    "tell_breaker",
    "tell_limit_cut",
    "tell_out",
    "tell_paused",
    "tell_resumed",
]

log = structlog.get_logger("llm")

_SCOPE = ("epoch", "step", "class", "question_id")
_LONG_S = 2 * 86400.0


@contextmanager
def _unscoped() -> Iterator[None]:
    """Without the scope of the call that is in hand."""
    known = structlog.contextvars.get_contextvars()
    scope = {key: known[key] for key in _SCOPE if key in known}
    structlog.contextvars.unbind_contextvars(*scope)
    try:
        yield
    finally:
        structlog.contextvars.bind_contextvars(**scope)


@_unscoped()
def tell_breaker(state: EndpointState, now: float) -> None:
    """One line for every change of a breaker, with what comes next."""
    name, breaker = state.name, state.breaker.state
    if breaker == "open":
        state.open_since = state.open_since or now
        log.warning(
            "llm.breaker_open",
            endpoint=name,
            repeated=_told_before(state.probes),
            last_error=state.last_error,
            retry_in_s=round(state.breaker.retry_in(now), 1),
            next="then one call tries it; the others go elsewhere or wait",
        )
    elif breaker == "half_open":
        state.probes += 1
        log.info(
            "llm.breaker_half_open",
            endpoint=name,
            repeated=_told_before(state.probes),
            last_error=state.last_error,
            next="one call tries it: an answer closes the breaker, a failure opens it again",
        )
    else:
        open_s = round(now - state.open_since, 1)
        state.open_since, state.probes = 0.0, 0
        log.info(
            "llm.breaker_closed",
            endpoint=name,
            open_s=open_s,
            limit=state.limit.value,
            next="it is asked again, from its first limit on",
        )


@_unscoped()
def tell_out(state: EndpointState, now: float) -> None:
    """It serves nobody, and others of these roles are left. Told to the operator once."""
    roles = sorted(state.out_of)
    state.out_since = state.out_since if state.refusals else now
    cause, retry_in_s = cause_of(state.last_error), round(state.bar.retry_in(now), 1)
    remedy = as_called(remedy_of(state.last_error))
    next_ = f"the others of its roles go on; in {_span(retry_in_s)} one call tries it again"
    log.warning(
        "llm.endpoint_out",
        endpoint=state.name,
        roles=roles,
        last_error=state.last_error,
        remedy=remedy,
        retry_in_s=retry_in_s,
        repeated=state.refusals > 0,
        next=next_,
        line=f"llm.endpoint_out: {state.name} ({address_of(state.endpoint.url)}) is out of "
        f"{', '.join(roles)}: {cause.rstrip('. ')}. To mend it: {remedy}. Meanwhile {next_}.",
    )
    state.refusals += 1


@_unscoped()
def tell_back(state: EndpointState, now: float) -> None:
    """It has answered again."""
    out_s = round(now - state.out_since, 1)
    state.out_since, state.refusals = 0.0, 0
    log.info(
        "llm.endpoint_back",
        endpoint=state.name,
        roles=sorted(state.out_of),
        out_s=out_s,
        next="it is asked again",
    )


@_unscoped()
def tell_limit_cut(state: EndpointState, before: int, why: str) -> None:
    """Fewer requests at a time."""
    log.info(
        "llm.limit_cut",
        endpoint=state.name,
        limit=state.limit.value,
        before=before,
        why=why,
        next="grows again by 5 % a round while all is well",
    )


@_unscoped()
def tell_paused(
    roles: Sequence[Role], states: Sequence[EndpointState], waits_s: float, *, never: bool
) -> None:
    """Every endpoint of these roles is down. never: none of them has answered yet."""
    troubles = {state.name: state.trouble for state in states}
    until = f"the run waits at most {_span(waits_s)}{_clock(waits_s)}, then it stops, resumable"
    if never:
        next_ = f"wrong base_url? try: bin/train CONFIG --check; {until}"
    else:
        next_ = f"goes on by itself as soon as one answers, nothing is scored meanwhile; {until}"
    next_ = as_called(next_)
    named = "; ".join(f"{name} {trouble.rstrip('. ')}" for name, trouble in troubles.items())
    silent = " (not one of them has answered yet)" if never else ""
    log.warning(
        "llm.paused",
        roles=list(roles),
        endpoints=troubles,
        never_answered=never,
        waits_at_most_s=waits_s,
        next=next_,
        line=f"llm.paused: {', '.join(roles)}: no endpoint answers{silent}: {named}. "
        f"{next_[:1].upper()}{next_[1:]}.",
    )


@_unscoped()
def tell_resumed(roles: Sequence[Role], paused_s: float) -> None:
    """One of their endpoints has answered."""
    log.info(
        "llm.resumed",
        roles=list(roles),
        paused_s=round(paused_s, 1),
        next="the calls that waited are sent",
    )


def _told_before(probes: int) -> bool:
    """Whether another line would say nothing new: all but the 1st, 2nd, 4th, 8th ... probe."""
    return probes & (probes - 1) != 0


def _span(seconds: float) -> str:
    """``40 s``, ``30 min``, ``24 h``."""
    if seconds < 120:
        return f"{seconds:g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"


def _clock(seconds: float) -> str:
    """Until when, by the clock of the log, where that says something."""
    if not 120 <= seconds <= _LONG_S:
        return ""
    return f" (until {datetime.now(UTC) + timedelta(seconds=seconds):%H:%M} UTC)"
