"""What every printed table has in common. Nothing is wrapped or cut by the terminal's width."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from actors.trainer.score import McNemar, wilson

__all__ = ["new_table", "paired_line", "render", "share"]


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


def paired_line(what: str, paired: McNemar) -> str:
    """A paired comparison in one line: counts, gain with its interval, exact p."""
    if paired.pairs == 0:
        return f"{what}: no question was answered on both sides"
    gain = (paired.wins - paired.losses) / paired.pairs
    return (
        f"{what}: {paired.wins} won, {paired.losses} lost of {paired.pairs} pairs; "
        f"gain {gain:+.1%} [{paired.low:+.1%}, {paired.high:+.1%}]; "
        f"exact one-sided McNemar p = {paired.p:.2g}"
    )


def render(parts: Sequence[Table | Group | Text], file_width: int | None = None) -> str:
    """The parts as text, a blank line between them, never wrapped by the terminal's width.

    Nor cut: two reasons why a class is dropped make a line longer than any terminal (row P0-3).
    """
    console = Console(width=file_width or 400, no_color=True, highlight=False, force_terminal=False)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
            console.print()
    return capture.get()
