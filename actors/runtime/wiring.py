"""Who asks whom, checked before anything runs.

Requests and events go along declared edges only, and the edges form a directed graph
without cycles: no two actors can wait for each other, neither for a reply nor for room in
a mailbox. Pure: nothing is started here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from actors.runtime.actor import Actor
from actors.runtime.address import Address
from actors.runtime.errors import WiringError

__all__ = ["ActorSpec", "Peers", "Strategy", "Wiring"]

Strategy = Literal["one_for_one", "rest_for_one"]

Peers: TypeAlias = Callable[[str], Address]
"""Gives an actor's factory the address of a peer that its spec declares."""


@dataclass(frozen=True, kw_only=True)
class ActorSpec:
    """One actor of the system.

    name: in addresses and log lines.
    factory: builds each incarnation; gets ``peers``, called with a name out of ``asks``.
    asks: the actors it may ask or tell.
    concurrency: handlers that may run at once.
    mailbox_size: messages that may wait; None: the runtime's setting.
    strategy: ``rest_for_one``: its crash also restarts every actor started after it.
    """

    name: str
    factory: Callable[[Peers], Actor]
    asks: tuple[str, ...] = ()
    concurrency: int = 1
    mailbox_size: int | None = None
    strategy: Strategy = "one_for_one"


class Wiring:
    """The checked graph.

    Raises WiringError for a doubled or empty name, a peer that does not exist, a cycle (the
    message spells it out), a concurrency or mailbox size below 1.
    """

    def __init__(self, specs: Sequence[ActorSpec]) -> None:
        self._specs: dict[str, ActorSpec] = {}
        for spec in specs:
            if not spec.name or spec.name in self._specs:
                raise WiringError(f"the actor name {spec.name!r} is empty or taken")
            if spec.concurrency < 1 or (spec.mailbox_size is not None and spec.mailbox_size < 1):
                raise WiringError(f"{spec.name}: concurrency and mailbox_size are at least 1")
            self._specs[spec.name] = spec
        for spec in specs:
            for peer in spec.asks:
                if peer not in self._specs:
                    raise WiringError(f"{spec.name} asks {peer}, which does not exist")
        self.start_order = self._sorted()

    def _sorted(self) -> tuple[ActorSpec, ...]:
        """Dependencies first; otherwise in the order of declaration."""
        done: dict[str, ActorSpec] = {}

        def visit(name: str, path: tuple[str, ...]) -> None:
            if name in path:
                cycle = (*path[path.index(name) :], name)
                raise WiringError(f"cycle: {' -> '.join(cycle)}")
            if name in done:
                return
            for peer in self._specs[name].asks:
                visit(peer, (*path, name))
            done[name] = self._specs[name]

        for name in self._specs:
            visit(name, ())
        return tuple(done.values())

    def check_known(self, name: str) -> None:
        """Raise WiringError unless there is such an actor."""
        if name not in self._specs:
            raise WiringError(f"there is no actor {name}; there are {', '.join(self._specs)}")

    def check_edge(self, asker: str, target: str) -> None:
        """Raise WiringError unless ``asker`` declares that it asks ``target``."""
        self.check_known(asker)
        if target not in self._specs[asker].asks:
            raise WiringError(f"{asker} -> {target} is not declared in the asks of {asker}")
