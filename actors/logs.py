"""Where log lines go: JSON to ``logs/train.jsonl``, the same events readable on stderr.

Event names are stable dotted verbs (``gate.decision``, ``actor.restarting``); scope and actor
come from structlog's context variables, which the runtime binds. Secrets never pass. An event
that brings its own ``line`` is shown on the console as that line.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TextIO, cast

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from actors.log_lines import for_console
from actors.streams import json_text

__all__ = ["configure_logs", "masked"]

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
_SECRET = re.compile(r"(api_?key|authorization|password|secret|bearer)", re.IGNORECASE)
_URL_USERINFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_QUIET_ON_CONSOLE = frozenset(
    {
        "actor.started",
        "actor.stopped",
        "cache.closed",
        "cache.open",
        "class.planned",
        "factorial.edit",
        "factorial.pair",
        "gate.look",
        "ledger.open",
        "llm.attempt_failed",
        "llm.call",
        "pass.done",
        "pass.start",
        "rollout.done",
        "runtime.stats",
        "runtime.tasks",  # the stacks behind a runtime.blocked line: pages of them, for the file
    }
)


@lru_cache(maxsize=1024)
def _is_secret(key: str) -> bool:
    return _SECRET.search(key) is not None and not key.endswith("_env")


def masked(key: str, value: object) -> object:
    """A value with what is secret hidden, however deep it lies: by its key, or inside a URL.

    The name of a variable that holds a key (``api_key_env``) is none.
    """
    if value is not None and _is_secret(key):
        return "***"
    if isinstance(value, str):
        return _URL_USERINFO.sub("***", value) if "@" in value else value
    if isinstance(value, Mapping):
        return {name: masked(str(name), inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [masked("", inner) for inner in value]
    return value


def _without_secrets(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Mask values whose key names a secret, and credentials inside URLs."""
    for key, value in event.items():
        if not (isinstance(value, int | float) or value is None):
            event[key] = masked(key, value)
    return event


class _Console:
    """stderr that never raises: a closed pipe must not end a night's run."""

    def write(self, text: str) -> int:
        """Write, or drop the text."""
        with suppress(OSError, ValueError):
            return sys.stderr.write(text)
        return 0

    def flush(self) -> None:
        """Flush what can be flushed."""
        with suppress(OSError, ValueError):
            sys.stderr.flush()


class _JsonLines:
    """A processor that writes every event to the file, then hands it on.

    A full disk loses lines, never the run: the loss is told on the console when it begins, and
    in the file, with the number of lines, once there is room again.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._lost = 0
        self._traceback = structlog.processors.format_exc_info

    def __call__(self, logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
        line: Mapping[str, object] = self._traceback(logger, name, dict(event))
        self._put(f"{json_text(line)}\n")
        return event

    def _put(self, text: str) -> None:
        try:
            if self._lost:
                self._file.write(f'{{"event":"log.lost","timestamp":"","lines":{self._lost}}}\n')
            self._file.write(text)
            self._file.flush()
            self._lost = 0
        except OSError as error:
            if not self._lost:
                _Console().write(f"the log cannot be written, lines are lost: {error}\n")
            self._lost += 1


def _drop_quiet(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Not on the console: what is told of every call, and what was told before."""
    if event.get("event") in _QUIET_ON_CONSOLE or event.get("repeated") is True:
        raise structlog.DropEvent
    return event


def _for_console(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """What people read; the file has been written already."""
    return for_console(event)


class _Tap:
    """Hands every event to whoever adds them up, whatever level the files are kept at."""

    def __init__(self, hear: Callable[[Mapping[str, object]], None]) -> None:
        self._hear = hear

    def __call__(self, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
        self._hear(event)
        return event


class _AtLeast:
    """Drops what is below the level that was asked for."""

    def __init__(self, level: int) -> None:
        self._level = level

    def __call__(self, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
        if _LEVELS[event["level"]] < self._level:
            raise structlog.DropEvent
        return event


def configure_logs(
    path: Path | None,
    level: str,
    run_id: str | None,
    *,
    hear: Callable[[Mapping[str, object]], None] | None = None,
) -> TextIO | None:
    """Set structlog up for the process.

    path: the JSON lines file, appended to; None: console only. level: a level's name.
    hear: is given every event from ``info`` on, even if the level keeps it out of the file; it
    must not raise, for it would raise wherever something is logged, and must not change it.
    Returns the open file, to be closed at the end.
    """
    wanted = _LEVELS[level.lower()]
    heard: list[Processor] = [] if hear is None else [_Tap(hear), _AtLeast(wanted)]
    file = None if path is None else path.open("a", encoding="utf-8", buffering=1)
    structlog.contextvars.clear_contextvars()
    if run_id is not None:
        structlog.contextvars.bind_contextvars(run_id=run_id)
    if path is not None:
        # Runs of the same settings have the same id; the folder tells their logs apart.
        structlog.contextvars.bind_contextvars(workspace=path.parent.parent.name)
    colours = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _without_secrets,
            *heard,
            *([] if file is None else [_JsonLines(file)]),
            _drop_quiet,
            _for_console,
            structlog.dev.ConsoleRenderer(
                colors=colours,
                pad_event_to=0,
                sort_keys=False,
                exception_formatter=structlog.dev.plain_traceback,
            ),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            wanted if hear is None else min(wanted, logging.INFO)
        ),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", _Console())),
        cache_logger_on_first_use=False,
    )
    return file
