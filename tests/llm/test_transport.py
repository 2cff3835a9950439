"""One try over real sockets: connections are reused, closed, and never poisoned."""

from __future__ import annotations

import anyio
import msgspec
import pytest

from actors.llm.classify import Failure
from actors.llm.endpoints import resolve_endpoints
from actors.llm.stream import Complete
from actors.llm.transport import Transport
from protocol.llm import ChatAnswer
from protocol.settings import LlmSettings
from tests.llm.server import SSE_HEAD, Connection, answer, chunked, serving, sse
from tests.llm.support import House, asked, endpoint, settings

pytestmark = pytest.mark.anyio


async def healthy(connection: Connection) -> None:
    """Answer every request."""
    while await connection.request() is not None:
        await connection.send(answer("Hello"))


async def test_one_connection_for_many_streams() -> None:
    """A2.6: the drain after the end marker makes the connection reusable."""

    async def late_end(connection: Connection) -> None:
        while await connection.request() is not None:
            whole = answer("Hello")
            await connection.send(whole[: -len(b"0\r\n\r\n")])
            await anyio.sleep(0.005)
            await connection.send(b"0\r\n\r\n")

    async with serving(late_end) as server, House.open(settings(endpoint(server.base_url))) as h:
        for number in range(20):
            assert isinstance(await h.actor.chat(asked(f"q{number}")), ChatAnswer)
        assert len(server.connections) == 1


async def test_a_cancelled_call_leaves_no_connection() -> None:
    """S12: the server sees it closed while the client lives on."""
    streaming = anyio.Event()
    gone = anyio.Event()

    async def endless(connection: Connection) -> None:
        if await connection.request() is None:
            return
        await connection.send(SSE_HEAD + chunked(sse("Hel"), last=False))
        streaming.set()
        await connection.until_gone()
        gone.set()

    async with serving(endless) as server, House.open(settings(endpoint(server.base_url))) as house:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(house.ask, asked())
            await streaming.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(1):
            await gone.wait()
            await server.connections[0].gone.wait()
        assert server.live == 0
        assert not house.entries


async def test_cancellations_do_not_poison_the_pool() -> None:
    """S1: after many calls cancelled at any moment, the client still serves."""

    async def slow(connection: Connection) -> None:
        while await connection.request() is not None:
            await anyio.sleep(0.005)
            await connection.send(answer("Hello"))

    async with serving(slow) as server:
        wanted = settings(endpoint(server.base_url), concurrency=4)
        async with House.open(wanted) as house:

            async def worker(number: int) -> None:
                for turn in range(15):
                    with anyio.move_on_after(0.001 * ((number * 7 + turn) % 20)):
                        await house.actor.chat(asked(f"q{number}-{turn}"))

            async with anyio.create_task_group() as tasks:
                for number in range(16):
                    tasks.start_soon(worker, number)
            async with anyio.create_task_group() as tasks:
                for number in range(8):
                    tasks.start_soon(house.ask, asked(f"last{number}"))
            assert sum(row.outcome == "ok" for row in house.rows[-8:]) == 8
        with anyio.fail_after(2):
            for connection in server.connections:
                await connection.gone.wait()


async def test_the_head_of_a_request() -> None:
    """Key, identity encoding, and no proxy from the environment."""
    heads: list[bytes] = []

    async def keep(connection: Connection) -> None:
        while (request := await connection.request()) is not None:
            heads.append(request[0].lower())
            await connection.send(answer("Hello"))

    async with serving(keep) as server:
        keyed = msgspec.structs.replace(endpoint(server.base_url), api_key_env="KEY")
        async with House.open(settings(keyed), {"KEY": "sesame"}) as house:
            assert isinstance(await house.actor.chat(asked()), ChatAnswer)
    assert heads[0].startswith(b"post /v1/chat/completions http/1.1")
    assert b"authorization: bearer sesame" in heads[0]
    assert b"accept-encoding: identity" in heads[0]


async def test_the_clocks() -> None:
    """Each names itself; the attempt's clock runs on while data comes."""

    async def dripping(connection: Connection) -> None:
        await connection.request()
        await connection.send(SSE_HEAD)
        for _ in range(100):
            await connection.send(chunked(sse("x"), last=False))
            await anyio.sleep(0.02)

    async def failed(wanted: LlmSettings) -> Failure:
        transport = Transport(wanted)
        (target,) = resolve_endpoints(wanted.endpoints, {}, 1)
        try:
            exchange = await transport.exchange(target, b"{}", 9.0)
        finally:
            await transport.aclose()
        assert isinstance(exchange.result, Failure)
        assert exchange.result.kind == "timeout"
        return exchange.result

    async with serving(dripping) as server:
        target = endpoint(server.base_url)
        failure = await failed(settings(target, attempt_s=0.2))
        assert failure.detail.startswith("attempt")
        failure = await failed(settings(target, idle_s=0.005))
        assert failure.detail.startswith("idle")

    async def silent(connection: Connection) -> None:
        await connection.until_gone()

    async with serving(silent) as server:
        failure = await failed(settings(endpoint(server.base_url), first_token_s=0.05))
        assert failure.detail.startswith("first token")


async def test_a_server_that_does_not_stop() -> None:
    """Neither the end of an answer nor that of an error is waited for: the server sees us go."""

    async def endless(connection: Connection) -> None:
        await connection.request()
        if connection.number == 1:
            await connection.send(answer("Hello").removesuffix(b"0\r\n\r\n"))
        else:
            await connection.send(b"HTTP/1.1 500 No\r\n\r\n")
            while True:
                await connection.send(b"no " * 10_000)
        await connection.until_gone()

    async with serving(endless) as server:
        wanted = settings(endpoint(server.base_url), attempt_s=600.0, idle_s=600.0)
        (target,) = resolve_endpoints(wanted.endpoints, {}, 1)
        transport = Transport(wanted)
        with anyio.fail_after(20):
            for outcome in (Complete, Failure):
                exchange = await transport.exchange(target, b"{}", 600.0)
                assert isinstance(exchange.result, outcome)
                await server.connections[-1].gone.wait()
        await transport.aclose()


async def test_an_address_that_cannot_be_is_fatal() -> None:
    """Another scheme is our own mistake; a closed port is the network's."""
    for base_url, kind in (("ftp://x/v1", "bad_request"), ("http://127.0.0.1:9/v1", "transport")):
        wanted = settings(endpoint(base_url))
        transport = Transport(wanted)
        (target,) = resolve_endpoints(wanted.endpoints, {}, 1)
        result = (await transport.exchange(target, b"{}", 9.0)).result
        assert isinstance(result, Failure)
        assert result.kind == kind
        await transport.aclose()


async def test_throughput() -> None:
    """Prints calls per second at concurrency 32 against a trivial server in this process."""
    calls = 640
    async with serving(healthy) as server:
        wanted = settings(endpoint(server.base_url))
        async with House.open(wanted) as house:

            async def worker(number: int) -> None:
                for turn in range(calls // 32):
                    reply = await house.actor.chat(asked(f"q{number}-{turn}"))
                    assert isinstance(reply, ChatAnswer)

            begun = anyio.current_time()
            async with anyio.create_task_group() as tasks:
                for number in range(32):
                    tasks.start_soon(worker, number)
            seconds = anyio.current_time() - begun
        print(f"{calls / seconds:.0f} calls/s at concurrency 32")
        assert len(server.connections) <= 32
