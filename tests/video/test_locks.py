"""One holder per key."""

from __future__ import annotations

import anyio
import pytest
from anyio import wait_all_tasks_blocked

from actors.video.locks import KeyedLocks

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]


async def test_different_keys_do_not_wait_and_the_same_key_does() -> None:
    locks = KeyedLocks()
    inside: list[str] = []
    leave = anyio.Event()

    async def hold(key: str, name: str) -> None:
        async with locks.hold(key):
            inside.append(name)
            await leave.wait()

    async with anyio.create_task_group() as tasks:
        for key, name in (("a", "a1"), ("a", "a2"), ("b", "b1")):
            tasks.start_soon(hold, key, name)
        await wait_all_tasks_blocked()
        assert sorted(inside) in (["a1", "b1"], ["a2", "b1"])
        leave.set()
    assert sorted(inside) == ["a1", "a2", "b1"]
    assert len(locks) == 0


async def test_a_cancelled_or_failing_holder_makes_way() -> None:
    locks = KeyedLocks()
    with anyio.CancelScope() as scope:
        async with locks.hold("a"):
            scope.cancel()
            await anyio.sleep_forever()
    with pytest.raises(RuntimeError):
        async with locks.hold("a"):
            raise RuntimeError
    async with locks.hold("a"):
        assert len(locks) == 1
    assert len(locks) == 0
