"""The mailbox alone: bound, order, lanes, expiry."""

from __future__ import annotations

import anyio
import pytest

from actors.runtime.envelope import Envelope, Reply
from actors.runtime.errors import ActorDead, AskTimeout
from actors.runtime.mailbox import CONTROL_SIZE, Mailbox
from tests.runtime.support import Do, Note, on_trio

pytestmark = pytest.mark.anyio


def mailbox(size: int = 3) -> Mailbox[str]:
    return Mailbox("box", size, lambda: None)


def event(text: str, sender: str = "test") -> Envelope:
    return Envelope(Note(text=text), sender=sender, sent_at=anyio.current_time())


def ask(text: str, deadline: float) -> Envelope:
    now = anyio.current_time()
    return Envelope(
        Do(text=text), sender="test", sent_at=now, deadline=deadline, reply=Reply[object]()
    )


def text_of(envelope: Envelope) -> str:
    assert isinstance(envelope.message, (Do, Note))
    return envelope.message.text


@on_trio
async def test_p7_senders_wait_and_the_high_water_mark_is_the_size() -> None:
    """30 senders on size 3: never more than 3 inside, all arrive, in their order."""
    box = mailbox(3)
    taken: list[str] = []
    deepest = 0
    async with anyio.create_task_group() as tasks:
        for index in range(30):
            tasks.start_soon(box.put, event(f"{index:02d}", sender=f"s{index:02d}"))
        await anyio.wait_all_tasks_blocked()
        assert (box.depth, len(box.senders)) == (3, 27)
        waiting = box.senders
        for _ in range(30):
            taken.append(text_of(await box.take()))
            await anyio.wait_all_tasks_blocked()
            deepest = max(deepest, box.depth)
    assert (box.high_water, deepest, box.empty) == (3, 3, True)
    assert len(set(taken)) == 30
    assert [f"s{text}" for text in taken[3:]] == list(waiting)


async def test_p7_a_sender_that_is_cancelled_leaves_nothing() -> None:
    """Neither in front of the mailbox nor inside; the next sender gets the room."""
    box = mailbox(1)
    await box.put(event("first"))
    reached: list[str] = []

    async def impatient(scope: anyio.CancelScope) -> None:
        with scope:
            await box.put(event("cancelled"))
            reached.append("put returned")
        reached.append(f"cancelled: {scope.cancelled_caught}")

    async with anyio.create_task_group() as tasks:
        scope = anyio.CancelScope()
        tasks.start_soon(impatient, scope)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(box.put, event("third"))
        await anyio.wait_all_tasks_blocked()
        assert len(box.senders) == 2
        scope.cancel()
        await anyio.wait_all_tasks_blocked()
        assert len(box.senders) == 1
        assert [text_of(await box.take()) for _ in range(2)] == ["first", "third"]
    assert reached == ["cancelled: True"]
    assert box.empty


async def test_p7_a_withdrawn_message_makes_room() -> None:
    """Discarding from the middle lets the first waiting sender in."""
    box = mailbox(2)
    gone = event("gone")
    await box.put(gone)
    await box.put(event("stays"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(box.put, event("late"))
        await anyio.wait_all_tasks_blocked()
        box.discard(gone)
        await anyio.wait_all_tasks_blocked()
        assert (box.depth, box.senders) == (2, ())
    assert [text_of(await box.take()) for _ in range(2)] == ["stays", "late"]


async def test_p3_messages_handed_back_come_first_and_in_order() -> None:
    """A full work lane does not keep them out, and is not counted by them."""
    box = mailbox(1)
    await box.put(event("queued"))
    box.put_back([event("a"), event("b")])
    assert (box.depth, box.high_water) == (3, 1)
    assert [text_of(await box.take()) for _ in range(3)] == ["a", "b", "queued"]


@on_trio
async def test_p11_an_expired_ask_is_answered_at_dequeue_and_not_handed_out() -> None:
    """The one behind it is."""
    box = mailbox()
    now = anyio.current_time()
    expired, fresh = ask("expired", now + 1), ask("fresh", now + 9)
    await box.put(expired)
    await box.put(fresh)
    await anyio.sleep(1)
    assert await box.take() is fresh
    assert box.expired == 1
    assert expired.reply is not None
    with pytest.raises(AskTimeout):
        expired.reply.result()


async def test_p5_closing_answers_what_waits_and_wakes_blocked_senders() -> None:
    """Inside, in front, and whoever comes later: all get ActorDead."""
    box = mailbox(1)
    inside = ask("inside", anyio.current_time() + 60)
    await box.put(inside)
    told: list[str] = []

    async def late() -> None:
        try:
            await box.put(event("blocked"))
        except ActorDead:
            told.append("dead")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(late)
        await anyio.wait_all_tasks_blocked()
        box.close()
    with pytest.raises(ActorDead):
        await box.put(event("later"))
    assert told == ["dead"]
    assert inside.reply is not None
    with pytest.raises(ActorDead):
        inside.reply.result()
    assert box.empty


async def test_p10_control_has_a_lane_of_its_own_with_a_bound() -> None:
    """A full work lane does not matter; an overflow of control is a bug that shows."""
    box = mailbox(1)
    await box.put(event("work"))
    for index in range(CONTROL_SIZE):
        box.post(str(index))
    with pytest.raises(RuntimeError, match="control messages are waiting"):
        box.post("one too many")
    assert await box.take_control() == "0"
    assert len(box.take_all_control()) == CONTROL_SIZE - 1


@on_trio
async def test_p17_the_oldest_may_stand_in_front_of_the_mailbox() -> None:
    """Age counts from the send, wherever the message waits."""
    box = mailbox(1)
    waiting = event("waiting")
    await anyio.sleep(5)
    await box.put(event("inside"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(box.put, waiting)
        await anyio.wait_all_tasks_blocked()
        assert box.oldest is waiting
        tasks.cancel_scope.cancel()
    assert repr(box) == "<mailbox of box: 1 of 1>"


async def test_p1_a_reply_is_written_once() -> None:
    """The first writer wins, value or failure."""
    reply = Reply[int]()
    with pytest.raises(RuntimeError, match="before it was written"):
        reply.result()
    assert reply.succeed(1)
    assert not reply.succeed(2)
    assert not reply.fail(ActorDead("a", "b"))
    assert await reply.get() == 1


async def test_p7_what_was_taken_is_not_looked_for_among_those_that_wait() -> None:
    """Every ask discards its message when it ends, with thousands still in front of the mailbox."""
    changes: list[None] = []
    box: Mailbox[str] = Mailbox("box", 1, lambda: changes.append(None))
    async with anyio.create_task_group() as tasks:
        for index in range(20):
            tasks.start_soon(box.put, event(f"{index:02d}"))
        await anyio.wait_all_tasks_blocked()
        taken = await box.take()
        waiting = box.senders
        box.discard(taken)
        assert (box.senders, changes) == (waiting, [])
        box.put_back([taken])
        box.discard(taken)  # it waits again, so that it can be taken out again
        assert (box.senders, box.depth, len(changes)) == (waiting, 1, 1)
        tasks.cancel_scope.cancel()
    assert box.senders == ()
    box.close()
    box.discard(taken)
