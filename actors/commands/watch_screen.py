"""Draws a ``View`` with rich. Pure: from what was read to what is shown; fits 80 columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from rich.console import Group, OverflowMethod, RenderableType
from rich.table import Table
from rich.text import Text

from actors.commands.console import visible
from actors.commands.html.words import count, verb
from actors.commands.watch_end import next_line
from actors.commands.watch_factorial import (
    COLUMNS,
    epoch_cells,
    epoch_columns,
    head_line,
    pairs_rows,
)
from actors.commands.watch_reading import Epoch, Ladder, View
from actors.factorial_view import FactorialView
from actors.llm.causes import cause_of
from actors.monitor.board import number, text
from actors.monitor.spans import duration
from actors.monitor.words import progress_line
from protocol.llm import EndpointSeen

__all__ = ["bar", "draw", "news_line", "path_of"]

_NEWS = 12
_FEWEST_NEWS = 4
_BAR = 12
_PATH = 12
_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII = ".:-=+*%#"
_FLOOR = 0.1
"""An e-value this small or smaller is the lowest block."""
_STANDARD = frozenset(
    {
        "event", "timestamp", "level", "run_id", "workspace", "actor", "line",
        "epoch", "step", "class", "question_id",
    }
)  # fmt: skip
_VERDICTS = {"accept": "green", "reject": "red", "undecided": "yellow", "untestable": "yellow"}


def draw(view: View, *, plain: bool = False, height: int | None = None) -> Group:
    """The whole picture. plain: only ASCII, for terminals that know no more.

    height: lines that there are; what matters least is left out to keep to it. None: the command
    that goes on stands on one line, however long, to be pasted.
    """
    view, n_news = _fitted(view, height)
    cut: OverflowMethod = "crop" if plain else "ellipsis"
    parts: list[RenderableType] = [*_head(view, cut, unbroken=height is None)]
    endpoints = _endpoints(view.endpoints, live=view.alive) if view.endpoints else None
    tables = (
        _epochs(view.epochs, view.together) if view.epochs else None,
        None if view.together is None else _pairs(view.together, plain=plain),
        _gates(view.ladders, plain=plain) if view.ladders else None,
        endpoints,
        _actors(view.actors, view.end) if view.actors else None,
    )
    for table in tables:
        if table is not None:
            for column in table.columns:
                column.overflow = cut
            parts += [Text(), table]
            if table is endpoints:
                parts += _troubles(view.endpoints, cut)
    if view.news and n_news:
        parts += [Text(), Text("last events", style="bold")]
        for event in list(view.news)[-n_news:]:
            parts.append(Text(news_line(event), style=_style(event), no_wrap=True, overflow=cut))
    return Group(*parts)


def _fitted(view: View, height: int | None) -> tuple[View, int]:
    """Of actors the busy ones, of epochs the last, and as many events as there is room for."""
    if height is None:
        return view, _NEWS

    def left() -> int:
        classes = () if view.together is None else view.together.classes
        tables = (view.epochs, view.ladders, classes, view.endpoints, view.actors)
        head = len(_head(view, "crop")) + (view.progress is not None)  # which may wrap
        head += len(_troubles(view.endpoints, "crop"))
        return height - head - sum(len(table) + 2 for table in tables if table) - 2

    if left() < _FEWEST_NEWS:
        busy = [one for one in view.actors if _is_busy(one)]
        view = replace(view, actors=busy)
    if left() < _FEWEST_NEWS:
        view = replace(view, epochs=view.epochs[-2:])
    if left() < _FEWEST_NEWS:
        view = replace(view, actors=[one for one in view.actors if number(one, "restarts")])
    return view, max(0, min(_NEWS, left()))


def _is_busy(actor: Mapping[str, object]) -> bool:
    return any(number(actor, key) for key in ("depth", "in_flight", "restarts"))


def _head(view: View, cut: OverflowMethod, *, unbroken: bool = False) -> list[Text]:
    lines = [
        Text.assemble(
            (visible(view.run_id or view.workspace.name), "bold"),
            "  ",
            (view.state, "green" if view.alive else "yellow"),
        ),
        Text(visible(str(view.workspace)), style="dim", overflow=cut, no_wrap=True),
    ]
    if further := next_line(view.workspace, view.end, refused=view.refused):
        overflow: OverflowMethod = "ignore" if unbroken else "fold"
        lines.append(Text(visible(further), no_wrap=unbroken, overflow=overflow))
    if view.paused_by:
        lines.append(Text(f"paused by {visible(view.paused_by)}", style="bold yellow"))
    if view.together is not None:
        lines.append(head_line(view.together))
    if view.progress is not None:
        lines.append(Text(progress_line(view.progress, None)))
    if view.calls:
        waiting = f"{view.waiting} {verb(view.waiting, 'waits', 'wait')}"
        told = f"{count(view.calls, 'call')}, {waiting}, oldest {duration(view.oldest_s)}"
        lines.append(Text(told))
    if view.usd is not None:
        lines.append(Text(f"spent ${view.usd:.2f}"))
    return lines


def _table(*names: str) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for at, name in enumerate(names):
        table.add_column(name, no_wrap=True, ratio=1 if at == 0 else None)
    return table


def _epochs(epochs: Sequence[Epoch], together: FactorialView | None) -> Table:
    if together is not None:
        table = _table("epoch", "package", "val", "test", *epoch_columns())
        for one in epochs:
            when = str(one.epoch or "seed")
            cells = epoch_cells(together, one)
            table.add_row(when, one.package, _share(one.val), _share(one.test), *cells)
        return table
    table = _table("epoch", "package", "val", "test", "tests", "accepted", "slow update")
    for one in epochs:
        table.add_row(
            str(one.epoch) if one.epoch else "seed",
            one.package,
            _share(one.val),
            _share(one.test),
            "" if one.tests is None else str(one.tests),
            "" if one.accepted is None else str(one.accepted),
            one.slow,
        )
    return table


def _share(counted: tuple[int, int] | None) -> str:
    if counted is None or not counted[1]:
        return ""
    return f"{counted[0] / counted[1]:.1%} of {counted[1]}"


def _pairs(together: FactorialView, *, plain: bool) -> Table:
    table = _table(*COLUMNS)
    pairs_rows(table, together, partial(bar, plain=plain))
    return table


def _gates(ladders: Sequence[Ladder], *, plain: bool) -> Table:
    table = _table("class", "step", "ladder", "units", "e-values", "e", "verdict", "kept")
    for one in ladders:
        verdict = Text(one.verdict or one.doing, style=_VERDICTS.get(one.verdict, "cyan"))
        table.add_row(
            visible(one.name),
            f"{one.epoch}.{one.step}",
            bar(one.units, one.n_units, plain=plain),
            f"{one.units}/{one.n_units}" if one.n_units else "",
            path_of(one.path, one.accept_from, plain=plain),
            f"{one.path[-1]:.2g}" if one.path else "",
            verdict,
            f"{one.accepted}/{one.tests}",
        )
    return table


def bar(done: int, planned: int, *, plain: bool = False) -> str:
    """How much of a ladder was climbed; empty without one."""
    if planned <= 0:
        return ""
    filled = min(_BAR, round(_BAR * done / planned))
    full, empty = ("#", ".") if plain else ("█", "░")
    return full * filled + empty * (_BAR - filled)


def path_of(path: Sequence[float], accept_from: float, *, plain: bool = False) -> str:
    """The e-values block by block, on a logarithmic scale; the top accepts at an early look."""
    marks = _ASCII if plain else _BLOCKS
    top = math.log(max(accept_from, 1.0) / _FLOOR)
    shown = ""
    for e in path[-_PATH:]:
        height = math.log(max(e, _FLOOR) / _FLOOR) / top if math.isfinite(e) else 1.0
        shown += marks[min(len(marks) - 1, int(height * len(marks)))]
    return shown


def _endpoints(endpoints: Sequence[EndpointSeen], *, live: bool) -> Table:
    table = _table("endpoint", "roles", "load", "breaker" if live else "breaker, last heard")
    for one in endpoints:
        again = f", again in {one.opens_in_s:.0f} s" if live and one.opens_in_s > 0 else ""
        style = {"closed": "green", "open": "red"}.get(one.breaker, "yellow")
        table.add_row(
            visible(one.name),
            ",".join(one.roles),
            f"{one.in_flight}/{one.limit} (max {one.ceiling})",
            Text(f"{one.breaker.replace('_', '-')}{again}", style=style),
        )
    return table


def _troubles(endpoints: Sequence[EndpointSeen], cut: OverflowMethod) -> list[Text]:
    """Why those that are down are: below the table, where there is room for it."""
    return [
        Text(f"{visible(one.name)}: {why}", style="red", no_wrap=True, overflow=cut)
        for one in endpoints
        if one.breaker != "closed" and (why := visible(cause_of(one.last_error)))
    ]


def _actors(actors: Sequence[Mapping[str, object]], end: str) -> Table:
    over = "dead" if end == "died" else end  # of an actor that stopped in order it is its run's
    table = _table("actor", "state", "in hand", "mailbox", "oldest", "handled", "restarts")
    for one in actors:
        restarts = int(number(one, "restarts"))
        oldest = number(one, "oldest_s")
        table.add_row(
            visible(text(one, "actor")),
            over or text(one, "state"),
            str(int(number(one, "in_flight"))),
            f"{int(number(one, 'depth'))}/{int(number(one, 'size'))}",
            duration(oldest) if oldest >= 1 else "",
            str(int(number(one, "handled"))),
            Text(str(restarts), style="red" if restarts else ""),
        )
    return table


def news_line(event: Mapping[str, object]) -> str:
    """One event: time of day, name, and what it says."""
    stamp = text(event, "timestamp")[11:19]
    line = text(event, "line")
    if line:
        return visible(f"{stamp} {line}".replace("\n", " "))
    told = [
        f"{key}={_short(value)}"
        for key, value in event.items()
        if key not in _STANDARD and value not in (None, "", [], {})
    ]
    who = text(event, "actor") if text(event, "event").startswith("actor.") else _scope(event)
    parts = [stamp, text(event, "event"), who, *told]
    return visible(" ".join(part for part in parts if part).replace("\n", " "))


def _scope(event: Mapping[str, object]) -> str:
    """``e3.2 Counting Problem``."""
    epoch, step = int(number(event, "epoch")), int(number(event, "step"))
    where = f"e{epoch}" + (f".{step}" if step else "") if epoch else ""
    return f"{where} {text(event, 'class')}".strip()


def _short(value: object) -> str:
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _style(event: Mapping[str, object]) -> str:
    return {"warning": "yellow", "error": "red"}.get(text(event, "level"), "")
