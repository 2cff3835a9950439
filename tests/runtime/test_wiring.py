"""What is refused before anything runs."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.runtime.actor import Actor, handler_names, handles
from actors.runtime.errors import WiringError
from actors.runtime.supervisor import Supervisor
from actors.runtime.wiring import ActorSpec, Peers, Wiring
from tests.runtime.support import Do, Done, Journal, echo, settings, worker


def build(peers: Peers) -> Actor:
    return Actor()


def spec(name: str, *asks: str, concurrency: int = 1) -> ActorSpec:
    return ActorSpec(name=name, factory=build, asks=asks, concurrency=concurrency)


def order(*specs: ActorSpec) -> list[str]:
    return [one.name for one in Wiring(specs).start_order]


def test_p6_dependencies_start_first() -> None:
    """Otherwise the order of declaration holds."""
    assert order(
        spec("trainer", "gate", "ledger"),
        spec("gate", "baseline"),
        spec("cache"),
        spec("llm", "cache"),
        spec("baseline", "rollout"),
        spec("rollout", "llm", "ledger"),
        spec("ledger"),
    ) == ["cache", "llm", "ledger", "rollout", "baseline", "gate", "trainer"]


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ([spec("a", "b"), spec("b", "c"), spec("c", "b")], "cycle: b -> c -> b"),
        ([spec("a", "a")], "cycle: a -> a"),
        ([spec("a", "nobody")], "a asks nobody, which does not exist"),
        ([spec("a"), spec("a")], "'a' is empty or taken"),
        ([spec("")], "'' is empty or taken"),
        ([spec("a", concurrency=0)], "at least 1"),
    ],
    ids=["cycle", "self", "unknown", "twice", "empty", "concurrency"],
)
def test_p9_what_cannot_be_wired_is_refused_by_name(specs: list[ActorSpec], message: str) -> None:
    """Tell and ask go along the same edges, so one graph without cycles rules out both waits."""
    with pytest.raises(WiringError, match=message):
        Wiring(specs)


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_p9_a_graph_is_sorted_or_has_the_cycle_in_the_message(
    edges: list[tuple[int, int]],
) -> None:
    """Of any graph: every edge goes backward in the start order, or the named path is a cycle."""
    asks: dict[str, tuple[str, ...]] = {
        str(node): tuple(str(b) for a, b in edges if a == node) for node in range(8)
    }
    try:
        names = order(*(spec(name, *peers) for name, peers in asks.items()))
    except WiringError as exc:
        path = str(exc).removeprefix("cycle: ").split(" -> ")
        assert path[0] == path[-1]
        assert all(b in asks[a] for a, b in itertools.pairwise(path))
    else:
        assert sorted(names) == sorted(asks)
        assert all(names.index(b) < names.index(a) for a, peers in asks.items() for b in peers)


@pytest.mark.anyio
async def test_p9_an_undeclared_edge_is_refused() -> None:
    """Also while the system runs, and for strangers."""
    journal = Journal()
    specs = [worker(journal, "low", echo), worker(journal, "high", echo, asks=("low",))]
    async with Supervisor(specs, settings()) as system:
        assert system.connect("high", "low").name == "low"
        assert system.start_order == ("low", "high")
        for asker, target, message in [
            ("low", "high", "low -> high is not declared"),
            ("high", "nobody", "high -> nobody is not declared"),
            ("nobody", "low", "there is no actor nobody; there are low, high"),
        ]:
            with pytest.raises(WiringError, match=message):
                system.connect(asker, target)
        with pytest.raises(WiringError, match="there is no actor nobody"):
            system.address("nobody")


def test_two_handlers_for_one_message_are_refused() -> None:
    """A handler table has one answer."""

    class Twice(Actor):
        @handles(Do)
        async def one(self, request: Do) -> Done:
            return Done(text=request.text, incarnation=1)

        @handles(Do)
        async def two(self, request: Do) -> Done:
            return Done(text=request.text, incarnation=2)

    with pytest.raises(WiringError, match="one and two both handle Do"):
        handler_names(Twice)


def test_a_state_for_nobody_is_refused() -> None:
    """A checkpoint of another system is not silently dropped."""
    with pytest.raises(WiringError, match="state for ghost"):
        Supervisor([spec("a")], settings(), restored={"ghost": b"{}"})
