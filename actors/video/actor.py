"""Serves ``protocol.video``: the trees of one folder, the most recent ones in memory.

Files are read and searches run in worker threads. A tree that is missing or damaged is
the reply ``TreeUnavailable``; the agent's own mistakes are ``ToolRefused``.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from actors.runtime.actor import Actor, handles
from actors.video.render import (
    hits_text,
    lines_text,
    node_text,
    overview_text,
    unknown_node_text,
)
from actors.video.search import SearchableTree
from actors.video.store import TreeCache, read_tree
from actors.video.tree import TreeError
from protocol.settings import DataSettings
from protocol.video import (
    GetOverview,
    SearchSubtitles,
    SearchTree,
    ToolRefused,
    TreeText,
    TreeUnavailable,
    ViewNode,
)

__all__ = ["VideoActor"]

_MAX_K = 20
_MAX_LINES = 20


class VideoActor(Actor):
    """trees: the folder with one tree per video."""

    def __init__(self, settings: DataSettings, trees: Path) -> None:
        self._folder = trees
        self._cache = TreeCache(settings.tree_cache)
        self._reading = anyio.Lock()  # one reader: a tree that many ask for is read once

    @handles(GetOverview)
    async def overview(self, request: GetOverview) -> TreeText | TreeUnavailable:
        """The top level."""
        loaded = await self._load(request.video_id)
        if isinstance(loaded, TreeUnavailable):
            return loaded
        return overview_text(loaded.tree)

    @handles(ViewNode)
    async def view(self, request: ViewNode) -> TreeText | ToolRefused | TreeUnavailable:
        """One node."""
        loaded = await self._load(request.video_id)
        if isinstance(loaded, TreeUnavailable):
            return loaded
        node = loaded.tree.nodes.get(request.node_id)
        if node is None:
            return ToolRefused(text=unknown_node_text(loaded.tree, request.node_id))
        return node_text(loaded.tree, node)

    @handles(SearchTree)
    async def search(self, request: SearchTree) -> TreeText | ToolRefused | TreeUnavailable:
        """The best nodes."""
        if not request.query.strip():
            return ToolRefused(text="The query is empty. Give two to four words.")
        if not 1 <= request.k <= _MAX_K:
            return ToolRefused(text=f"k must be from 1 to {_MAX_K}, not {request.k}.")
        loaded = await self._load(request.video_id)
        if isinstance(loaded, TreeUnavailable):
            return loaded
        nodes = await to_thread.run_sync(partial(loaded.search, request.query, request.k))
        return hits_text(request.query, nodes)

    @handles(SearchSubtitles)
    async def subtitles(self, request: SearchSubtitles) -> TreeText | ToolRefused | TreeUnavailable:
        """The best subtitle lines, or those of a time range."""
        start, end = request.start_s, request.end_s
        if not request.query.strip() and start is None and end is None:
            return ToolRefused(text="Give a query, or a time range in seconds, or both.")
        if start is not None and end is not None and start > end:
            return ToolRefused(text=f"The time range {start}-{end} s runs backward.")
        loaded = await self._load(request.video_id)
        if isinstance(loaded, TreeUnavailable):
            return loaded
        lines = await to_thread.run_sync(
            partial(loaded.search_lines, request.query, start, end, _MAX_LINES)
        )
        return lines_text(request.query, lines, bool(loaded.lines))

    async def _load(self, video_id: str) -> SearchableTree | TreeUnavailable:
        kept = self._cache.get(video_id)
        if kept is not None:
            return kept
        async with self._reading:
            kept = self._cache.get(video_id)
            if kept is not None:
                return kept
            try:
                tree = await to_thread.run_sync(partial(read_tree, self._folder, video_id))
            except TreeError as error:
                return TreeUnavailable(detail=str(error))
            self._cache.put(video_id, tree)
            return tree
