"""Tool calls out of their parts, whatever numbers the server gives them.

Some servers number every call 0 and tell them apart by id alone, some leave the number out
(ollama#7881, clients.md A2.11). Never judges a call beyond whether its arguments are JSON.
"""

from __future__ import annotations

import json

from actors.llm.chunks import ToolDelta
from protocol.llm import ToolCall

__all__ = ["ToolCalls"]


class _Open:
    def __init__(self) -> None:
        self.call_id = ""
        self.name = ""
        self.arguments: list[str] = []


class ToolCalls:
    """Collects the calls of one answer; true once there is one."""

    def __init__(self) -> None:
        self._calls: list[_Open] = []
        self._places: dict[int | str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, delta: ToolDelta) -> None:
        """Put a part where it belongs."""
        key: int | str = delta.call_id or (delta.slot if delta.slot is not None else -1)
        # a part with neither id nor number goes on with the last call
        if key not in self._places and (key != -1 or not self._calls):
            self._places[key] = len(self._calls)
            self._calls.append(_Open())
        place = self._places.get(key, len(self._calls) - 1)
        if delta.slot is not None:
            self._places[delta.slot] = place  # later parts carry the number without the id
        call = self._calls[place]
        call.call_id = call.call_id or delta.call_id
        call.name = call.name or delta.name
        call.arguments.append(delta.arguments)

    def whole(self) -> tuple[ToolCall, ...] | None:
        """All calls; None if the arguments of one are not JSON, so that it was cut."""
        calls = []
        for call in self._calls:
            arguments = "".join(call.arguments) or "{}"
            try:
                json.loads(arguments)
            except ValueError:
                return None
            calls.append(ToolCall(call_id=call.call_id, name=call.name, arguments=arguments))
        return tuple(calls)
