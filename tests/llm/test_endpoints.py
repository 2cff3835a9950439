"""Keys from the environment, and the choice of an endpoint."""

from __future__ import annotations

import anyio
import msgspec
import pytest

from actors.llm.breaker import Breaker
from actors.llm.endpoints import EndpointPool, resolve_endpoints
from tests.llm.support import endpoint

TWO = (endpoint("http://a/v1/", "a"), endpoint("http://b/v1", "b", "m2"))


def test_keys_come_from_the_named_variable() -> None:
    """And are never shown."""
    keyed = msgspec.structs.replace(TWO[0], api_key_env="A_KEY")
    (resolved,) = resolve_endpoints((keyed,), {"A_KEY": "secret"})
    assert resolved.api_key == "secret"
    assert resolved.url == "http://a/v1/chat/completions"
    assert "secret" not in repr(resolved)


@pytest.mark.parametrize("environ", [{}, {"A_KEY": " "}])
def test_a_missing_key_names_variable_and_endpoint(environ: dict[str, str]) -> None:
    """At start, not at the first call."""
    keyed = msgspec.structs.replace(TWO[0], api_key_env="A_KEY")
    with pytest.raises(ValueError, match=r"A_KEY.*'a'"):
        resolve_endpoints((keyed,), environ)


def pool(concurrency: int = 2, failures: int = 1) -> EndpointPool:
    return EndpointPool(
        resolve_endpoints(TWO, {}), concurrency, lambda: Breaker(failures, 60.0, 60.0)
    )


def picked(of: EndpointPool, failures: tuple[str, ...] = ()) -> str | None:
    found = of.pick("search", lambda _: False, failures.count)
    return None if found is None else found.name


@pytest.mark.anyio
async def test_least_in_flight_then_another_than_the_failed() -> None:
    """Order breaks ties; a failure of this call outweighs the load."""
    both = pool()
    a, _ = both.of_role("search")
    assert both.models("search") == ("m", "m2")
    assert picked(both) == "a"
    async with both.slot(a):
        assert both.in_flight("a") == 1
        assert picked(both) == "b"
        assert picked(both, ("b",)) == "a"
    assert both.in_flight("a") == 0


@pytest.mark.anyio
async def test_an_open_breaker_is_passed_over() -> None:
    """Both open: none."""
    both = pool()
    for resolved, left in zip(both.of_role("search"), ("b", None), strict=True):
        async with both.slot(resolved) as slot:
            assert slot is not None
            slot.verdict = "failure"
        assert picked(both) == left
        async with both.slot(resolved) as slot:
            assert slot is None


@pytest.mark.anyio
async def test_cancelled_waiters_leave_no_permit_behind() -> None:
    """S11: most of the queue is cancelled; the rest still gets through."""
    both = pool(concurrency=1)
    a, _ = both.of_role("search")
    done = 0

    async def use(scope: anyio.CancelScope) -> None:
        nonlocal done
        with scope:
            async with both.slot(a) as slot:
                assert slot is not None
                await anyio.lowlevel.checkpoint()
                done += 1

    scopes = [anyio.CancelScope() for _ in range(100)]
    async with anyio.create_task_group() as tasks:
        for scope in scopes:
            tasks.start_soon(use, scope)
        await anyio.lowlevel.checkpoint()
        for scope in scopes[10:]:
            scope.cancel()
    assert 10 <= done < 100
    assert both.in_flight("a") == 0
