"""What becomes of the messages that a dead incarnation had in hand.

| message | it caused the crash | only beside it | the actor is dead |
| --- | --- | --- | --- |
| not idempotent | ActorCrashed | ActorCrashed | ActorDead (the culprit: ActorCrashed) |
| idempotent | handed back once, then PoisonMessage | handed back, not counted | the same |

A crash is caused by the message in hand and by those that it was asked for. The latter matters
with ``rest_for_one``: an asker that is restarted with the actor it crashed would otherwise ask
the same again, for ever. A message that nobody waits for any more is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from actors.runtime.envelope import Envelope
from actors.runtime.errors import ActorCrashed, ActorDead, PoisonMessage

__all__ = ["settle"]

log = structlog.stdlib.get_logger("actors.runtime")


def settle(
    actor: str,
    in_hand: Iterable[Envelope],
    culprits: frozenset[Envelope],
    *,
    why: str,
    dead: bool,
) -> list[Envelope]:
    """Answer what must not run again; what may is returned, in its old order.

    culprits: the messages that caused the crash; other actors' among them do not matter.
    why: for those who are told. dead: no other incarnation follows.
    """
    handed_back: list[Envelope] = []
    for envelope in in_hand:
        culprit = envelope in culprits
        if envelope.unwanted:
            continue
        if dead and not culprit:
            envelope.fail(ActorDead(actor, "the actor has stopped"))
        elif dead or not envelope.idempotent:
            if envelope.reply is None:
                log.warning("actor.event_lost", actor=actor, request=envelope.kind, why=why)
            envelope.fail(ActorCrashed(actor, f"{envelope.kind}: {why}"))
        elif culprit and envelope.crashes:
            log.error("actor.poison", actor=actor, request=envelope.kind)
            told = f"{envelope.kind} crashed two incarnations ({why})"
            envelope.fail(PoisonMessage(actor, told))
        else:
            envelope.crashes += culprit
            handed_back.append(envelope)
            log.warning(
                "actor.redelivered", actor=actor, request=envelope.kind, crashes=envelope.crashes
            )
    return handed_back
