"""The two ways of calling a tool: a JSON object in the reply's text, or the server's tool calls.

Pure. A dialect writes requests, reads replies and puts observations into messages; the loop knows
neither. An agent that was given native tools and writes JSON all the same is understood: servers
whose template does not know a model's own form leave the call in the text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from actors.rollout.action import Action, read_action, read_tool_call
from actors.rollout.answer_text import storable
from actors.rollout.tools import ToolName, reply_schema, tool_specs
from prompts.reply import Unreadable
from prompts.trajectory import clip
from protocol.llm import ChatAnswer, ChatMessage, ImagePart, TextPart, ToolCall, ToolSpec
from protocol.video import Picture

__all__ = ["Dialect", "JsonDialect", "NativeDialect", "Request", "Said", "picture_parts"]

_CUT = {
    "length": "it was cut off at the token limit; be shorter",
    "content_filter": "it was cut off by a content filter",
}
_SHOWN_OF_UNREADABLE = 1000  # characters; a reply that helped nobody need not fill the context
_ONE_AT_A_TIME = "Not run: only the first call of a reply is. Call again if you still need it."


class Request(msgspec.Struct, frozen=True):
    """What is asked beside the messages."""

    json_schema: str | None = None
    tools: tuple[ToolSpec, ...] = ()


class Said(msgspec.Struct, frozen=True):
    """A reply. raw: all of it, storable. calls: native ones, every one of which wants an answer."""

    raw: str
    read: Action | Unreadable
    message: ChatMessage
    cut: bool
    calls: tuple[ToolCall, ...] = ()


class Dialect(Protocol):
    """See the module."""

    def request(self, *, last: bool, without: str = "") -> Request:
        """last: only an answer is taken. without: a tool that is not offered this time."""
        ...

    def read(self, answer: ChatAnswer, number: int) -> Said:
        """number: of the reply, from 1."""
        ...

    def observation(
        self, said: Said, text: str, pictures: Sequence[Picture] = ()
    ) -> tuple[ChatMessage, ...]:
        """What a call brought, or what is wrong with a reply."""
        ...


class JsonDialect:
    """One JSON object per reply, held to a schema where the endpoint can."""

    def __init__(
        self, tools: tuple[ToolName, ...], letters: str, skills: tuple[str, ...] = ()
    ) -> None:
        self._tools = tools
        self._letters = letters
        self._skills = skills

    def request(self, *, last: bool, without: str = "") -> Request:
        """The schema of the replies that are allowed now."""
        tools = _allowed(self._tools, last=last, without=without)
        return Request(json_schema=reply_schema(tools, self._letters, self._skills))

    def read(self, answer: ChatAnswer, number: int) -> Said:
        """The object in the text."""
        raw = storable(answer.text)
        read = _cut(answer) or read_action(raw, self._tools)
        return _said_in_text(raw, _with_thought(read, answer), answer)

    def observation(
        self, said: Said, text: str, pictures: Sequence[Picture] = ()
    ) -> tuple[ChatMessage, ...]:
        """A message of the user."""
        return (ChatMessage(role="user", content=_content(text, pictures)),)


class NativeDialect:
    """The server's own tool calls; one per reply is run."""

    def __init__(
        self, tools: tuple[ToolName, ...], letters: str, skills: tuple[str, ...] = ()
    ) -> None:
        self._tools = tools
        self._letters = letters
        self._skills = skills

    def request(self, *, last: bool, without: str = "") -> Request:
        """The tools that may be called now."""
        tools = _allowed(self._tools, last=last, without=without)
        return Request(tools=tool_specs(tools, self._letters, self._skills))

    def read(self, answer: ChatAnswer, number: int) -> Said:
        """The first call; without one, the text as in JSON."""
        calls = tuple(
            ToolCall(
                call_id=storable(call.call_id) or f"call_{number}_{place}",
                name=storable(call.name),
                arguments=storable(call.arguments),
            )
            for place, call in enumerate(answer.tool_calls)
        )
        text = storable(answer.text)
        cut = _cut(answer)
        if not calls or cut is not None:
            read = cut or read_action(text, self._tools)
            if isinstance(read, Unreadable) and cut is None:
                read = Unreadable(f"no tool was called, and {read.problem}")
            return _said_in_text(_raw(text, calls), _with_thought(read, answer), answer)
        action = read_tool_call(text.strip(), calls[0], self._tools)
        return Said(
            raw=_raw(text, calls),
            read=_with_thought(action, answer),
            message=ChatMessage(role="assistant", content=text, tool_calls=calls),
            cut=False,
            calls=calls,
        )

    def observation(
        self, said: Said, text: str, pictures: Sequence[Picture] = ()
    ) -> tuple[ChatMessage, ...]:
        """An answer to every call; pictures follow as the user's, a tool's answer is text."""
        if not said.calls:
            return (ChatMessage(role="user", content=_content(text, pictures)),)
        answers = [ChatMessage(role="tool", content=text, call_id=said.calls[0].call_id)]
        answers += [
            ChatMessage(role="tool", content=_ONE_AT_A_TIME, call_id=call.call_id)
            for call in said.calls[1:]
        ]
        if pictures:
            content = _content("The pictures:", pictures)
            answers.append(ChatMessage(role="user", content=content))
        return tuple(answers)


def _allowed(tools: Sequence[ToolName], *, last: bool, without: str) -> tuple[ToolName, ...]:
    return ("submit_answer",) if last else tuple(tool for tool in tools if tool != without)


def _cut(answer: ChatAnswer) -> Unreadable | None:
    problem = _CUT.get(answer.finish)
    return None if problem is None else Unreadable(problem)


def _with_thought(read: Action | Unreadable, answer: ChatAnswer) -> Action | Unreadable:
    """What a thinking model thought stands in for the thought that it did not write."""
    if isinstance(read, Action) and not read.thought and answer.reasoning:
        return msgspec.structs.replace(read, thought=storable(answer.reasoning.strip()))
    return read


def _said_in_text(raw: str, read: Action | Unreadable, answer: ChatAnswer) -> Said:
    shown = clip(raw, _SHOWN_OF_UNREADABLE) if isinstance(read, Unreadable) else raw
    # Some endpoints refuse an assistant message without content.
    message = ChatMessage(role="assistant", content=shown or "(empty reply)")
    return Said(raw=raw, read=read, message=message, cut=answer.finish == "length")


def _raw(text: str, calls: Sequence[ToolCall]) -> str:
    """A native reply as one text."""
    if not calls:
        return text
    said: Mapping[str, object] = {
        "content": text,
        "tool_calls": [{"name": call.name, "arguments": call.arguments} for call in calls],
    }
    return json.dumps(said, ensure_ascii=False)


def _content(text: str, pictures: Sequence[Picture]) -> str | tuple[TextPart | ImagePart, ...]:
    return picture_parts(text, pictures) if pictures else text


def picture_parts(text: str, pictures: Sequence[Picture]) -> tuple[TextPart | ImagePart, ...]:
    """Text, then every picture behind a line that says which it is."""
    parts: list[TextPart | ImagePart] = [TextPart(text=text)]
    for picture in pictures:
        parts.append(TextPart(text=f"{picture.node_id}, at {picture.start_s:g} s:"))
        parts.append(ImagePart(url=picture.url))
    return tuple(parts)
