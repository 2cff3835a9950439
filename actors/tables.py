"""What every printed table has in common.

Tables and prose are made for ``WIDTH`` columns, as wide as the narrowest terminal that people use,
whatever the terminal is: a log, a mail and a screen show the same. Nothing is ever cut but names.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from actors.trainer.score import McNemar, wilson

__all__ = [
    "WIDTH",
    "class_name",
    "new_table",
    "paired_words",
    "percent",
    "prose",
    "render",
    "share",
]

WIDTH = 80
_NAME = 20


def new_table(title: str, *columns: str) -> Table:
    """A plain table; the first column is text, the others are numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for index, name in enumerate(columns):
        table.add_column(name, justify="left" if index == 0 else "right", no_wrap=True)
    return table


def share(right: int, planned: int) -> str:
    """``48/60  80.0% [68%, 88%]``: the count, the percentage, Wilson's 95 % interval."""
    if planned == 0:
        return "-"
    low, high = wilson(right, planned)
    return f"{right}/{planned}  {right / planned:6.1%} [{low:.0%}, {high:.0%}]"


def percent(right: int, planned: int) -> str:
    """``80.0% [68%, 88%]``: the same without the count."""
    if planned == 0:
        return "-"
    low, high = wilson(right, planned)
    return f"{right / planned:.1%} [{low:.0%}, {high:.0%}]"


def class_name(text: str) -> str:
    """A class's name for a column; of a long one the beginning."""
    return text if len(text) <= _NAME else f"{text[: _NAME - 2]}.."


def prose(*sentences: str) -> Text:
    """Running text below a table, broken between words."""
    return Text(
        textwrap.fill(" ".join(sentences), WIDTH, break_long_words=False, break_on_hyphens=False)
    )


def paired_words(paired: McNemar) -> str:
    """A paired comparison: gain with its interval, exact p. At least a pair is needed."""
    gain = (paired.wins - paired.losses) / paired.pairs
    return (
        f"{100 * gain:+.1f} points [{100 * paired.low:+.1f}, {100 * paired.high:+.1f}], "
        f"one-sided exact McNemar p = {paired.p:.2g}"
    )


def render(parts: Sequence[Table | Group | Text], file_width: int | None = None) -> str:
    """The parts as text, a blank line between them, never wrapped by the terminal's width.

    Nor cut: two reasons why a class is dropped make a line longer than any terminal (row P0-3).
    """
    page = io.StringIO()  # rich's own capture writes to stdout too, which may be full or gone
    console = Console(
        file=page,
        width=file_width or 400,
        no_color=True,
        highlight=False,
        force_terminal=False,
    )
    for part in parts:
        console.print(part)
        console.print()
    return "\n".join(line.rstrip() for line in page.getvalue().split("\n"))
