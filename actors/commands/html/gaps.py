"""What could not be read while a report was made: told on the page, never passed over."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar

import msgspec

from actors.baseline.seed_db import SeedBaselineError
from actors.config import ConfigError
from actors.dataset.errors import DataError
from actors.workspace.errors import WorkspaceError

__all__ = ["Gaps"]

T = TypeVar("T")


class Gaps:
    """told: a sentence each, with what to do where the reader of the file knows it."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def try_to(self, what: str, read: Callable[[], T], otherwise: T) -> T:
        """What ``read`` returns; else ``otherwise``, and the gap is told."""
        try:
            return read()
        except (
            ConfigError,
            DataError,
            KeyError,
            OSError,
            SeedBaselineError,
            WorkspaceError,
            msgspec.MsgspecError,
            sqlite3.Error,
        ) as error:
            why = f"has no {error}" if isinstance(error, KeyError) else str(error)
            self.told.append(f"{what}: {why}")
            return otherwise
