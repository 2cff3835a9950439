"""The embedded simulator: the only thing that can be asked of it is whether it is well.

Its answers go over HTTP, like those of any other endpoint.
"""

from __future__ import annotations

from typing import ClassVar

from protocol.base import Message, Request

__all__ = ["TwinHealth", "TwinHealthy"]


class TwinHealthy(Message, frozen=True, kw_only=True, tag=True):
    """The simulator answers.

    base_url: ``http://127.0.0.1:PORT/v1``, the same over restarts. pid: of its process.
    served: chat completions since that process began.
    """

    base_url: str
    pid: int
    served: int


class TwinHealth(Request[TwinHealthy], frozen=True, kw_only=True, tag=True):
    """Ask the simulator's own ``/health``."""

    IDEMPOTENT: ClassVar[bool] = True
