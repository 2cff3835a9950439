"""Printing lines and tables: in colour on a terminal, else plain, nothing behind a line."""

from __future__ import annotations

import io
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from rich.console import Console, RenderableType
from rich.text import Text

from actors.commands.seed_options import write

__all__ = ["columns", "hanging", "on_terminal", "show", "visible", "while_waiting"]

_COLUMNS, _NARROWEST = 100, 60

_PLAIN_WIDTH = 2_000  # wider than any table, so that no cell is cut or wrapped
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")


def on_terminal() -> bool:
    """Whether somebody looks at stdout."""
    return sys.stdout.isatty()


def columns() -> int:
    """How wide a line may be: the terminal, a hundred columns where there is none."""
    if not on_terminal():
        return _COLUMNS
    return max(_NARROWEST, shutil.get_terminal_size((_COLUMNS, 24)).columns)


@contextmanager
def while_waiting(line: str) -> Iterator[None]:
    """Show a line on the terminal of stderr as long as the block takes; without one, nothing."""
    shown = sys.stderr.isatty()
    with suppress(OSError, ValueError):
        if shown:
            sys.stderr.write(line)
            sys.stderr.flush()
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            if shown:
                sys.stderr.write(f"\r{' ' * len(line)}\r")
                sys.stderr.flush()


def hanging(first: str, text: str, width: int) -> str:
    """The text behind ``first``, broken between words, all its lines below each other."""
    lines = textwrap.wrap(
        text, width - len(first), replace_whitespace=False, break_on_hyphens=False
    )
    return f"\n{' ' * len(first)}".join([first + (lines[0] if lines else ""), *lines[1:]])


def visible(text: str) -> str:
    """The text with its control characters spelt out: a document must not steer a terminal."""
    return _CONTROL.sub(lambda found: _caret(found[0]), text)


def _caret(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code > 0x7F else f"^{chr(code ^ 0x40)}"


def show(parts: Sequence[RenderableType], *, colour: bool | None = None) -> None:
    """Print the parts on stdout; a line of text that is too long is the terminal's to wrap.

    colour: None: as the terminal has it.
    """
    if on_terminal() if colour is None else colour:
        console = Console(
            force_terminal=True, width=None if on_terminal() else _PLAIN_WIDTH, highlight=False
        )
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, Text))
        return
    page = io.StringIO()  # rich's own capture writes to stdout too, which may be full or gone
    console = Console(
        file=page, width=_PLAIN_WIDTH, no_color=True, highlight=False, force_terminal=False
    )
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, Text))
    write("\n".join(line.rstrip() for line in page.getvalue().split("\n")))
