"""A run's status as a few lines, for ``bin/trm control ... status``. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from actors.monitor.board import Progress, number, text
from actors.monitor.spans import duration
from actors.monitor.words import progress_line
from protocol.llm import EndpointSeen

__all__ = ["endpoints_of", "progress_of", "status_lines"]

Plain = Mapping[str, object]


def progress_of(status: Plain) -> Progress | None:
    """The status's progress; None: nothing is at work, or another version wrote it."""
    try:
        return msgspec.convert(status.get("progress"), Progress | None)
    except msgspec.ValidationError:
        return None


def endpoints_of(told: object) -> list[EndpointSeen]:
    """Endpoints as an event or a status has them, without the tag; those that can be read."""
    found = []
    for one in told if isinstance(told, list | tuple) else ():
        if isinstance(one, Mapping):
            try:
                found.append(msgspec.convert({**one, "type": "EndpointSeen"}, EndpointSeen))
            except msgspec.ValidationError:
                continue
    return found


def status_lines(status: Plain) -> list[str]:
    """What stands there, one thing a line."""
    lines = [f"run {text(status, 'run_id')}, process {int(number(status, 'pid'))}"]
    if text(status, "paused_by"):
        lines.append(f"paused by {text(status, 'paused_by')}")
    if status.get("draining"):
        lines.append("stops: what is in hand may finish")
    progress = progress_of(status)
    lines.append("nothing is at work" if progress is None else progress_line(progress, None))
    if status.get("quiet_s") is not None:
        lines.append(f"last thing finished {duration(number(status, 'quiet_s'))} ago")
    for one in endpoints_of(status.get("endpoints")):
        why = f", {one.last_error}" if one.breaker != "closed" and one.last_error else ""
        again = f", tried in {one.opens_in_s:g} s" if one.opens_in_s else ""
        lines.append(
            f"{one.name}: {one.in_flight} in flight of {one.limit} (at most {one.ceiling}), "
            f"breaker {one.breaker}{again}{why}"
        )
    waiting, calls = int(number(status, "waiting")), int(number(status, "calls"))
    if calls:
        oldest = duration(number(status, "oldest_s"))
        lines.append(f"{calls} calls, {waiting} of them wait; the oldest began {oldest} ago")
    return lines
