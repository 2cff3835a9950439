"""What becomes of the messages that a dead incarnation had in hand.

| message | in hand at the crash | only beside it | the actor is dead |
| --- | --- | --- | --- |
| not idempotent | ActorCrashed | ActorCrashed | ActorDead (the culprit: ActorCrashed) |
| idempotent | handed back once, then PoisonMessage | handed back, not counted | the same |

A message that nobody waits for any more is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from actors.runtime.envelope import Envelope
from actors.runtime.errors import ActorCrashed, ActorDead, PoisonMessage
from actors.runtime.incarnation import Crash

__all__ = ["settle"]

log = structlog.stdlib.get_logger("actors.runtime")


def settle(
    actor: str, in_hand: Iterable[Envelope], crash: Crash | None, *, dead: bool
) -> list[Envelope]:
    """Answer what must not run again; what may is returned, in its old order.

    crash: None when the incarnation was ended with another actor's restart, or stopped.
    dead: no other incarnation follows.
    """
    handed_back: list[Envelope] = []
    for envelope in in_hand:
        culprit = crash is not None and envelope is crash.envelope
        if envelope.unwanted:
            continue
        if dead and not culprit:
            envelope.fail(ActorDead(actor, "the actor has stopped"))
        elif dead or not envelope.idempotent:
            _lose(actor, envelope, crash)
        elif culprit and envelope.crashes:
            log.error("actor.poison", actor=actor, request=envelope.kind)
            envelope.fail(PoisonMessage(actor, f"{envelope.kind} crashed two incarnations"))
        else:
            envelope.crashes += culprit
            handed_back.append(envelope)
            log.warning(
                "actor.redelivered", actor=actor, request=envelope.kind, crashes=envelope.crashes
            )
    return handed_back


def _lose(actor: str, envelope: Envelope, crash: Crash | None) -> None:
    why = "the actor was restarted" if crash is None else f"crashed: {crash.cause!r}"
    if envelope.reply is None:
        log.warning("actor.event_lost", actor=actor, request=envelope.kind, why=why)
    envelope.fail(ActorCrashed(actor, f"{envelope.kind}: {why}"))
