"""What an ask can end with, other than its reply.

    RuntimeFailure
    ├── AskFailed        raised at the asker
    │   ├── ActorCrashed     the handler raised; the actor was restarted
    │   ├── PoisonMessage    the same idempotent message crashed two incarnations
    │   ├── ActorDead        stopped, or given up
    │   ├── AskTimeout       the deadline passed; the work below was cancelled
    │   └── AskCycle         the peer is already waiting for us
    ├── WiringError      refused before anything runs
    └── GaveUp           an actor used up its restarts; raised out of the supervisor

An ``AskFailed`` that a handler does not catch is not a crash of that handler: the
runtime passes it on to whoever asked, and nothing is restarted on the way.
"""

from __future__ import annotations

__all__ = [
    "ActorCrashed",
    "ActorDead",
    "AskCycle",
    "AskFailed",
    "AskTimeout",
    "GaveUp",
    "PoisonMessage",
    "RuntimeFailure",
    "WiringError",
]


class RuntimeFailure(Exception):
    """Anything that the runtime itself raises."""


class AskFailed(RuntimeFailure):
    """An ask ended without a reply. ``actor``: the peer where it ended; ``detail``: why."""

    def __init__(self, actor: str, detail: str) -> None:
        super().__init__(f"{actor}: {detail}")
        self.actor = actor
        self.detail = detail


class ActorCrashed(AskFailed):
    """The handler raised, and the message was not handed on."""


class PoisonMessage(AskFailed):
    """The same message crashed two incarnations."""


class ActorDead(AskFailed):
    """The actor does not run any more, or never did."""


class AskTimeout(AskFailed):
    """The deadline passed."""


class AskCycle(AskFailed):
    """Asking would wait for ourselves."""


class WiringError(RuntimeFailure):
    """The actors cannot be connected as declared; the message says which edge is at fault."""


class GaveUp(RuntimeFailure):
    """An actor crashed more than ``max_restarts`` times within ``period_s``."""
