"""Outages as the pool sees them: what is said, how long calls wait, who is let go."""

from __future__ import annotations

import anyio
import pytest
import structlog
from structlog.testing import capture_logs
from trio.testing import MockClock

from actors.llm.causes import address_of, cause_of
from actors.llm.classify import Failure
from tests.llm.pools import COOLDOWN_S, DOWN, once, pool, sending
from tests.runtime.support import on_trio

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    """Hours of waiting in no time."""
    return "trio", {"clock": MockClock(autojump_threshold=0)}


@on_trio
async def test_who_waits_for_a_probe_learns_that_it_failed() -> None:
    """The next probe is made when the breaker allows it, not when the first one's lease ends."""
    one = pool("a")
    await once(one, DOWN)
    began = anyio.current_time()

    async def call() -> None:
        async with sending(one) as slot:
            slot.settle(None, None)

    async with anyio.create_task_group() as tasks, sending(one) as slot:
        for _ in range(3):
            tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        slot.settle(DOWN, None)
    assert anyio.current_time() - began == COOLDOWN_S + 2 * COOLDOWN_S


@on_trio
async def test_an_outage_is_two_lines() -> None:
    """One when roles are paused, one when they go on, however many calls wait in between."""
    two = pool("a", "b", limit=50)
    with capture_logs() as lines:
        await once(two, DOWN)
        assert not [line for line in lines if line["event"] == "llm.paused"]
        await once(two, DOWN)
        async with anyio.create_task_group() as tasks:
            for failure in (DOWN, DOWN, DOWN, *[None] * 100):
                tasks.start_soon(once, two, failure)
                await anyio.wait_all_tasks_blocked()
    paused = [line for line in lines if line["event"] == "llm.paused"]
    resumed = [line for line in lines if line["event"] == "llm.resumed"]
    assert len(paused) == len(resumed) == 1
    assert set(paused[0]["roles"]) == {"search", "judge", "evolve", "vision"}
    assert resumed[0]["roles"] == paused[0]["roles"]
    assert paused[0]["endpoints"] == {name: f"http://{name}/v1: ConnectError" for name in "ab"}
    assert paused[0]["log_level"] == "warning"
    assert resumed[0]["paused_s"] == 3 * COOLDOWN_S


@on_trio
async def test_roles_with_other_endpoints_are_paused_by_a_line_of_their_own() -> None:
    """What is down is said of the roles that it holds up, and of no other."""
    two = pool("a", "b", roles={"a": ("search", "judge"), "b": ("search", "judge", "vision")})
    with capture_logs() as lines:
        await once(two, DOWN)
        await once(two, DOWN)
    told = [line["roles"] for line in lines if line["event"] == "llm.paused"]
    assert told == [["search", "judge"], ["vision"]]


@on_trio
@pytest.mark.parametrize("before", [True, False], ids=["answered", "silent"])
async def test_a_pause_says_where_nobody_answers_and_what_to_do(before: bool) -> None:
    """Without the scope of the call that met it, and without credentials."""
    one = pool("a", answered={"a"} if before else set(), first_answer_s=600.0, outage_s=86_400.0)
    refused = Failure("transport", "ConnectError: [Errno 111] Connection refused")
    scope = structlog.contextvars.bound_contextvars(
        **{"class": "OCR", "question_id": "q-17", "epoch": 1, "step": 2, "actor": "llm"}
    )
    structlog.configure(processors=[structlog.contextvars.merge_contextvars])
    with scope, capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        await once(one, refused)
        assert structlog.contextvars.get_contextvars()["question_id"] == "q-17"
    structlog.reset_defaults()
    told = {line["event"]: line for line in lines}
    assert set(told) == {"llm.breaker_open", "llm.paused"}
    for line in lines:
        assert line["actor"] == "llm"
        assert not line.keys() & {"class", "question_id", "epoch", "step"}
    paused = told["llm.paused"]
    assert paused["endpoints"] == {"a": "http://a/v1: connection refused (nothing listens there)"}
    assert paused["never_answered"] is not before
    assert paused["waits_at_most_s"] == (86_400.0 if before else 600.0)
    assert "a http://a/v1: connection refused" in paused["line"]
    assert ".." not in paused["line"]
    assert ("). Goes on by itself" if before else "). Wrong base_url?") in paused["line"]
    assert ("bin/train CONFIG --check" in paused["next"]) is not before
    assert ("not one of them has answered yet" in paused["line"]) is not before


@on_trio
async def test_the_line_of_a_pause_is_sentences() -> None:
    """A cause that ends with a full stop of its own is followed by no second one."""
    one = pool("a", answered={"a"})
    gone = "RemoteProtocolError: Server disconnected without sending a response."
    with capture_logs() as lines:
        await once(one, Failure("transport", gone))
    (line,) = [line["line"] for line in lines if line["event"] == "llm.paused"]
    assert "without sending a response. Goes on by itself" in line


@on_trio
async def test_the_first_answer_gives_a_role_all_patience() -> None:
    """An endpoint that has answered once is an outage when it is gone, not a wrong address."""
    one = pool("a", first_answer_s=100.0, outage_s=1000.0)
    waited = []
    for script in ((DOWN,), (None, DOWN)):
        for failure in script:
            async with one.slot("search", {}, retry=False) as slot:
                assert slot is not None
                slot.settle(failure, None)
        began = anyio.current_time()
        while True:
            async with one.slot("search", {}, retry=False) as slot:
                if slot is None:
                    break
                slot.settle(DOWN, None)
        waited.append(anyio.current_time() - began)
        await anyio.sleep(100.0)  # until the next probe is due
    assert waited == [100.0, 1000.0]


@on_trio
async def test_an_outage_that_lasts_too_long_ends_the_wait() -> None:
    """For who waited through it, and at once for who comes later: it is one outage."""
    one = pool("a", outage_s=100.0)
    began = anyio.current_time()
    ended: list[float] = []

    async def call(after: float) -> None:
        await anyio.sleep(after)
        while True:
            async with one.slot("search", {}, retry=False) as slot:
                if slot is None:
                    ended.append(anyio.current_time() - began)
                    return
                slot.settle(DOWN, None)

    await once(one, DOWN)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, 0.0)
        tasks.start_soon(call, 0.0)
        tasks.start_soon(call, 90.0)
        tasks.start_soon(call, 105.0)
    assert ended == [100.0, 100.0, 100.0, 105.0]
    assert one.waiting == 0


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (
            "transport: ConnectError: [Errno 111] Connection refused",
            "connection refused (nothing listens there)",
        ),
        (
            "transport: ConnectError: [Errno -2] Name or service not known",
            "the name does not resolve",
        ),
        (
            "transport: ConnectError: [Errno 113] No route to host",
            "no route to it",
        ),
        ("timeout: ConnectTimeout: ", "the connection does not come about in time"),
        ("timeout: first token: nothing within 5 s", "first token: nothing within 5 s"),
        ("server_error: HTTP 503: Loading model", "HTTP 503: Loading model"),
        ("transport: ReadError: ", "ReadError"),
        ("transport: ", "transport"),
        ("", ""),
    ],
)
def test_a_cause_in_words(error: str, cause: str) -> None:
    assert cause_of(error) == cause


def test_an_address_is_the_base_url_without_credentials() -> None:
    assert address_of("http://ann:pw@host:8/v1/chat/completions") == "http://host:8/v1"
