"""Looking into a video tree. Answers are the texts that the agent reads."""

from __future__ import annotations

from typing import ClassVar

from protocol.base import Message, Request

__all__ = [
    "GetOverview",
    "SearchSubtitles",
    "SearchTree",
    "ToolRefused",
    "TreeText",
    "TreeUnavailable",
    "ViewNode",
]


class TreeText(Message, frozen=True, kw_only=True, tag=True):
    """An observation, and the ids of the nodes it shows."""

    text: str
    node_ids: tuple[str, ...]


class ToolRefused(Message, frozen=True, kw_only=True, tag=True):
    """The agent's own mistake (unknown node, bad argument), told to it as text."""

    text: str


class TreeUnavailable(Message, frozen=True, kw_only=True, tag=True):
    """The tree is missing or damaged: infrastructure, the question's outcome is *missing*."""

    detail: str


class GetOverview(Request[TreeText | TreeUnavailable], frozen=True, kw_only=True, tag=True):
    """The top level of a video's tree: where the agent starts."""

    IDEMPOTENT: ClassVar[bool] = True

    video_id: str


class ViewNode(
    Request[TreeText | ToolRefused | TreeUnavailable], frozen=True, kw_only=True, tag=True
):
    """A node's card, subtitle, and a line per child."""

    IDEMPOTENT: ClassVar[bool] = True

    video_id: str
    node_id: str


class SearchTree(
    Request[TreeText | ToolRefused | TreeUnavailable], frozen=True, kw_only=True, tag=True
):
    """The ``k`` nodes that match a query best."""

    IDEMPOTENT: ClassVar[bool] = True

    video_id: str
    query: str
    k: int


class SearchSubtitles(
    Request[TreeText | ToolRefused | TreeUnavailable], frozen=True, kw_only=True, tag=True
):
    """Subtitle lines by text, and by time range in seconds where one is given."""

    IDEMPOTENT: ClassVar[bool] = True

    video_id: str
    query: str
    start_s: float | None = None
    end_s: float | None = None
