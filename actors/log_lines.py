"""An event as people read it on the console: short, in words where it is common. Pure.

Never for programs: the file has every field of the same event, as it was logged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from structlog.typing import EventDict

__all__ = ["for_console"]

Fields = Mapping[str, object]

_SCOPE = ("epoch", "step", "class", "question_id")
_CONTEXT = ("run_id", "workspace")
_FOR_THE_FILE = frozenset({"actor", "level", "logger", "lines", "run_key"})
_HASH = re.compile(r"\b[0-9a-f]{32,}\b")
_HASH_SHOWN = 12
_LOUD = ("warning", "error", "critical")
_NAME_WIDTH = 15


def for_console(event: Fields) -> EventDict:
    """What the console shows of an event, in the order in which it is shown.

    An event that brings its own ``line`` is that line. Else the name, where in the run it belongs,
    and words or fields: without what every line has, what is unknown, and what repeats the place.
    Of a warning or an error nothing is left out but the run, which is the same everywhere.
    """
    stamp = event.get("timestamp")
    shown: dict[str, object] = {"timestamp": stamp[11:19] if isinstance(stamp, str) else ""}
    level = event.get("level")
    if level in _LOUD:
        shown["level"] = level
    if isinstance(line := event.get("line"), str):
        return shown | {"event": line}
    name = str(event.get("event", ""))
    words = _WORDS.get(name)
    if words is not None and level not in _LOUD:
        told = words(event)
        place = _place(event)
        shown["event"] = f"{name:<{_NAME_WIDTH}} {place}{': ' if place else ''}{told}"
        return shown
    quiet = set() if level in _LOUD else _FOR_THE_FILE
    rest = {
        key: _short(value)
        for key, value in event.items()
        if key not in (*_SCOPE, *_CONTEXT, "timestamp", "level", "event")
        and key not in quiet
        and value is not None
    }
    shown["event"] = f"{name:<{_NAME_WIDTH}} {_place(event)}".rstrip()
    return shown | rest


def _place(event: Fields) -> str:
    """``e1 s2 Counting Problem q17``, as far as it is known."""
    letters = {"epoch": "e", "step": "s"}
    return " ".join(
        f"{letters.get(key, '')}{event[key]}" for key in _SCOPE if event.get(key) is not None
    )


def _short(value: object) -> object:
    """Numbers with the digits that count, hashes by their beginning."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, str):
        return _HASH.sub(lambda found: f"{found[0][:_HASH_SHOWN]}..", value)
    if isinstance(value, list):
        return [_short(one) for one in value]
    return value  # a tuple may be an exception's, which the renderer needs as it is


# -- words ------------------------------------------------------------------------------


def _decision(event: Fields) -> str:
    told = (
        f"{event.get('verdict')} ({event.get('reason')}); {event.get('wins')} won, "
        f"{event.get('losses')} lost of {event.get('units')}, e {_digits(event.get('e'))}, "
        f"p {_digits(event.get('p_gate'))}"
    )
    bound = event.get("lower_bound")
    bounded = f", gain >= {bound:+.0%}" if isinstance(bound, float) else ""
    return f"{told}{bounded}{_counted(event, 'missing')}"


def _step(event: Fields) -> str:
    return (
        f"{event.get('result')}; {event.get('right')}/{event.get('planned')} right, "
        f"{event.get('defects')} defects, {event.get('lapses')} lapses"
        f"{_counted(event, 'edits', 'missing', 'degraded', 'unreadable')}"
    )


def _evaluation(event: Fields) -> str:
    share = event.get("accuracy")
    accuracy = f" = {share:.1%}" if isinstance(share, float) else ""
    bounds = event.get("interval")
    interval = ""
    if isinstance(bounds, list | tuple) and len(bounds) == 2:
        interval = f" [{bounds[0]:.0%}, {bounds[1]:.0%}]"
    return (
        f"{event.get('pool')} {event.get('kind')} {event.get('right')}/{event.get('planned')}"
        f"{accuracy}{interval}, {event.get('package')}{_counted(event, 'missing')}"
    )


def _epoch_start(event: Fields) -> str:
    return f"begins with {event.get('package')}"


def _epoch_done(event: Fields) -> str:
    return (
        f"{event.get('package')}, best {event.get('best')}; {event.get('tests')} tests, "
        f"{event.get('accepted')} accepted"
    )


def _slow(event: Fields) -> str:
    return f"{event.get('result')}; {event.get('reason')}"


def _counted(event: Fields, *names: str) -> str:
    """``, 2 missing`` of everything that happened at all."""
    return "".join(f", {event[name]} {name}" for name in names if event.get(name))


def _digits(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, int | float) else str(value)


_WORDS: dict[str, Callable[[Fields], str]] = {
    "epoch.done": _epoch_done,
    "epoch.start": _epoch_start,
    "evaluation.done": _evaluation,
    "gate.decision": _decision,
    "slow_update.done": _slow,
    "step.done": _step,
}
