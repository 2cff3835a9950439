"""What an ask can end with, other than its reply.

    RuntimeFailure
    ├── AskFailed        raised at the asker
    │   ├── ActorCrashed     the handler raised; the actor was restarted
    │   ├── PoisonMessage    the same idempotent message crashed two incarnations
    │   ├── ActorDead        stopped, or given up
    │   ├── AskTimeout       the deadline passed; the work below was cancelled
    │   └── AskCycle         the peer is already waiting for us
    ├── WiringError      not connected as declared, or no handler for such a message
    ├── InjectedCrash    the testing switch, raised inside a handler
    └── SystemFailed     raised out of the supervisor
        ├── StartFailed      an actor's first start
        ├── GaveUp           an actor used up its restarts
        └── StopFailed       an actor that could not release what it held

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
    "InjectedCrash",
    "PoisonMessage",
    "RuntimeFailure",
    "StartFailed",
    "StopFailed",
    "SystemFailed",
    "WiringError",
    "in_words",
]


def in_words(exc: BaseException) -> str:
    """An exception's type and message: the ``repr`` of an OSError hides which file it was."""
    return f"{type(exc).__name__}: {exc}"


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


class InjectedCrash(RuntimeFailure):
    """Raised in a handler because the configuration's ``inject_crash`` says so."""


class SystemFailed(RuntimeFailure):
    """The run is over. ``actor``: where it broke; ``detail``: how. The cause is chained."""

    def __init__(self, actor: str, detail: str) -> None:
        super().__init__(f"{actor}: {detail}")
        self.actor = actor
        self.detail = detail


class StartFailed(SystemFailed):
    """An actor could not start for the first time: a fault of the set-up, not of the work."""


class GaveUp(SystemFailed):
    """An actor crashed more than ``max_restarts`` times within ``period_s``."""


class StopFailed(SystemFailed):
    """``on_stop`` raised or took too long: something may not have been written."""
