"""Looking into a video tree. Answers are the texts that the agent reads."""

from __future__ import annotations

from typing import ClassVar, Literal

from protocol.base import Message, Request
from protocol.embedder import EmbedFailure

__all__ = [
    "Frames",
    "GetOverview",
    "ObserveFrames",
    "Picture",
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
    """The tree cannot be looked into: infrastructure, the question's outcome is *missing*.

    kind: ``tree``: the tree, its index or a frame file is missing or damaged, and stays so until
    somebody mends it; otherwise why the embedder could not serve a search.
    """

    detail: str
    kind: Literal["tree"] | EmbedFailure = "tree"


class Picture(Message, frozen=True, kw_only=True, tag=True):
    """A key frame as a JPEG data URL (``data:image/jpeg;base64,...``).

    start_s: when it is seen, in seconds of the video.
    """

    node_id: str
    start_s: float
    url: str


class Frames(Message, frozen=True, kw_only=True, tag=True):
    """Key frames in time order.

    text: which they are, their summaries, and what is said around them.
    node_ids: the nodes that are shown, the event first where one was asked for.
    """

    text: str
    node_ids: tuple[str, ...]
    pictures: tuple[Picture, ...]


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


class ObserveFrames(
    Request[Frames | ToolRefused | TreeUnavailable], frozen=True, kw_only=True, tag=True
):
    """The pictures of one to four key frames, or of one event.

    node_ids: one to four nodes of level 3; or exactly one of level 2, and then at most four of
    its key frames are shown, spread over it. Anything else is refused, and so is every request
    for a video whose tree has no pictures.
    """

    IDEMPOTENT: ClassVar[bool] = True

    video_id: str
    node_ids: tuple[str, ...]
