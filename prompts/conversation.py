"""Asking a model for a typed reply: one call, and one more that names what was wrong.

A reply that was cut off, filtered, cannot be decoded or contradicts itself is a parse
failure; it is counted and handed back as a type of its own, never as an empty reply.
Nothing is retried here that the chat client already retried.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import msgspec

from prompts.reply import Decoded, Unreadable, decode_reply, reply_schema
from prompts.templates import texts_in
from protocol.base import Scope
from protocol.llm import Chat, ChatAnswer, ChatFailed, ChatMessage, Role
from protocol.redraws import redrawn

__all__ = ["ChatCall", "NotUnderstood", "Understood", "Unreachable", "ask_for"]

T = TypeVar("T")
ChatCall = Callable[[Chat], Awaitable[ChatAnswer | ChatFailed]]
_CUT_OFF = {
    "length": "it was cut off at the length limit; give a shorter one",
    "content_filter": "it was cut off by a content filter",
}
_ATTEMPTS = 2


class Understood(msgspec.Struct, Generic[T], frozen=True):
    """The reply, and what it took. parse_failures: unreadable replies before it."""

    value: T
    calls: int
    parse_failures: int


class NotUnderstood(msgspec.Struct, frozen=True):
    """The model answered, the re-ask too, and neither reply could be read."""

    problem: str
    calls: int
    parse_failures: int


class Unreachable(msgspec.Struct, frozen=True):
    """The chat itself failed: infrastructure, not the model."""

    failure: ChatFailed
    calls: int
    parse_failures: int


async def ask_for(
    chat: ChatCall,
    role: Role,
    prompt: str,
    wanted: type[T],
    scope: Scope,
    *,
    illustration: frozenset[str],
    check: Callable[[T], str | None] = lambda _: None,
    schema: str | None = None,
    again: int = 0,
) -> Understood[T] | NotUnderstood | Unreachable:
    """Ask ``role`` for a ``wanted``; replayed from the cache for ever (``cache_salt`` None).

    illustration: texts of the prompt's example, which are no reply.
    check: what is wrong with a reply of the right form, in a sentence to the model; None: nothing.
    schema: a JSON schema narrower than that of ``wanted``, for endpoints that can enforce one.
    again: how often what was made of the replies was refused; then those are not replayed.
    """
    salt = redrawn(role, again) if again else None
    schema = schema or reply_schema(wanted)
    messages: tuple[ChatMessage, ...] = (ChatMessage(role="user", content=prompt),)
    problem = ""
    for attempt in range(1, _ATTEMPTS + 1):
        answer = await chat(
            Chat(role=role, messages=messages, cache_salt=salt, json_schema=schema, scope=scope)
        )
        if isinstance(answer, ChatFailed):
            return Unreachable(answer, attempt, attempt - 1)
        read = (
            Unreadable(_CUT_OFF[answer.finish])
            if answer.finish in _CUT_OFF
            else decode_reply(answer.text, wanted)
        )
        if not isinstance(read, Unreadable):
            read = _sensible(read, illustration, check)
        if not isinstance(read, Unreadable):
            return Understood(read.value, attempt, attempt - 1)
        problem = read.problem
        messages = (
            *messages,
            ChatMessage(role="assistant", content=answer.text or "(nothing)"),
            ChatMessage(
                role="user",
                content=f"Your reply could not be read: {problem}. "
                "Reply again with the complete JSON object only.",
            ),
        )
    return NotUnderstood(problem, _ATTEMPTS, _ATTEMPTS)


def _sensible(
    read: Decoded[T], illustration: frozenset[str], check: Callable[[T], str | None]
) -> Decoded[T] | Unreadable:
    """A reply that says something itself, and nothing that cannot be."""
    copied = sorted(texts_in(msgspec.to_builtins(read.value)) & illustration)
    if copied:
        return Unreadable(f"it repeats the example of the instructions ({copied[0]!r})")
    problem = check(read.value)
    return read if problem is None else Unreadable(problem)
