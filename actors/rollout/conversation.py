"""The messages of one attempt, kept within what a request may hold. Pure.

How large a request is follows from what the endpoint itself counted last time, and from the
characters that came or went since. When room is needed the oldest observations go first: a line
takes their place that says what they were, so that the agent can ask again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from protocol.llm import ChatMessage, ImagePart, TextPart

__all__ = ["PICTURE_TOKENS", "Conversation", "tokens_of"]

PICTURE_TOKENS = 1000
"""What a key frame is taken to cost; models differ by a factor of three around it."""
_CHARS_PER_TOKEN = 4
_PER_MESSAGE = 4

Stub = Sequence[ChatMessage]


class _Entry:
    """Messages that belong together. step: whose observation they are; 0: of none."""

    def __init__(self, messages: Sequence[ChatMessage], step: int = 0, stub: Stub = ()) -> None:
        self.messages = tuple(messages)
        self.step = step
        # a stub that is no shorter would cost what it should save
        self.stub = tuple(stub) if tokens_of(stub) < tokens_of(messages) else self.messages

    @property
    def saves(self) -> int:
        """Tokens that are won by putting the stub in place."""
        return tokens_of(self.messages) - tokens_of(self.stub)


class Conversation:
    """The conversation so far. limit: tokens that a request may have."""

    def __init__(self, opening: Sequence[ChatMessage], limit: int) -> None:
        self._entries = [_Entry(opening)]
        self._limit = limit
        self._shown: dict[int, _Entry] = {}  # observations that are there in full, oldest first
        self._kept: set[int] = set()  # those that stay
        self.tokens = tokens_of(opening)

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """What is sent."""
        return tuple(message for entry in self._entries for message in entry.messages)

    def shows(self, step: int) -> bool:
        """Whether what a step brought is there in full."""
        return step in self._shown or step in self._kept

    def measured(self, prompt_tokens: int) -> None:
        """The endpoint counted what was just sent; 0: it does not count."""
        if prompt_tokens > 0:
            self.tokens = prompt_tokens

    def say(self, *messages: ChatMessage) -> None:
        """Add what is never left out."""
        self._add(_Entry(messages))

    def show(self, messages: Sequence[ChatMessage], step: int, stub: Stub | None) -> None:
        """Add an observation. stub: what may take its place; None: it stays."""
        entry = _Entry(messages, step, messages if stub is None else stub)
        self._add(entry)
        if stub is None:
            self._kept.add(step)
        else:
            self._shown[step] = entry

    def has_room(self, tokens: int) -> bool:
        """Whether so much more fits if every observation before it goes."""
        return self._floor() + tokens <= self._limit

    def make_room(self) -> int:
        """Leave out the oldest observations until the rest fits, never the newest.

        Returns how many went.
        """
        return self._drop(lambda: self.tokens > self._limit and len(self._shown) > 1)

    def shrink(self) -> int:
        """The endpoint would not take so much: leave out half, the newest if it must be.

        Returns how many observations went; 0: there is nothing left to leave out.
        """
        too_much = self.tokens
        gone = self._drop(lambda: self.tokens > too_much / 2 and bool(self._shown))
        self._limit = min(self._limit, too_much - 1)
        return gone

    def _add(self, entry: _Entry) -> None:
        self._entries.append(entry)
        self.tokens += tokens_of(entry.messages)

    def _drop(self, wanted: Callable[[], bool]) -> int:
        gone = 0
        while wanted():
            step = next(iter(self._shown))
            entry = self._shown.pop(step)
            gone += entry.saves > 0
            self.tokens -= entry.saves
            entry.messages = entry.stub
        return gone

    def _floor(self) -> int:
        return self.tokens - sum(entry.saves for entry in self._shown.values())


def tokens_of(messages: Sequence[ChatMessage]) -> int:
    """An estimate: a quarter of the characters, and a fixed number for a picture."""
    return sum(map(_estimate, messages))


def _estimate(message: ChatMessage) -> int:
    parts = (
        (TextPart(text=message.content),) if isinstance(message.content, str) else message.content
    )
    pictures = sum(isinstance(part, ImagePart) for part in parts)
    chars = sum(len(part.text) for part in parts if isinstance(part, TextPart))
    chars += sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
    return _PER_MESSAGE + chars // _CHARS_PER_TOKEN + pictures * PICTURE_TOKENS
