"""Commands in processes of their own, with a stdout that is closed, full, or read by nobody."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from tests.system.runs import environment

__all__ = ["ASCII", "Stdout", "ended"]

Stdout = Literal["closed", "full", "unread", "read"]
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""A locale that has no sign beyond ASCII, and no way around it."""


def ended(
    *arguments: str | Path,
    stdout: Stdout = "read",
    shell: str = "",
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run ``bin/trm`` to its end; its stderr never holds a traceback.

    shell: a redirection such as ``<&-``. folder: the current one.
    """
    own = [sys.executable, "-m", "actors.main", *map(str, arguments)]
    if stdout == "closed":
        shell += " >&-"
    with _stdout(stdout) as place:
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {shell}', "sh", *own],
            env={**environment(), **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=place,
            stderr=subprocess.PIPE,
            cwd=folder,
            check=False,
        )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done


@contextmanager
def _stdout(kind: Stdout) -> Iterator[int]:
    """What the command writes to."""
    if kind == "read":
        yield subprocess.PIPE
    elif kind == "full":
        with Path("/dev/full").open("wb") as file:
            yield file.fileno()
    elif kind == "closed":
        yield subprocess.DEVNULL
    else:
        reader, writer = os.pipe()
        os.close(reader)
        try:
            yield writer
        finally:
            os.close(writer)
