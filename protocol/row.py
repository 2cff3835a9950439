"""What every row of ``run.db`` is (``protocol.rows``)."""

from __future__ import annotations

from typing import ClassVar

from protocol.base import Message

__all__ = ["Row"]


class Row(Message, frozen=True, kw_only=True, tag=True):
    """A row of a table."""

    TABLE: ClassVar[str]
    KEY: ClassVar[tuple[str, ...]]
