"""Serves ``protocol.video``: the trees of one folder, the most recent ones in memory.

Files are read, pictures scaled and searches run in worker threads. A tree or a frame that is
missing or damaged, and an embedder that fails, are the reply ``TreeUnavailable``; the agent's
own mistakes are ``ToolRefused``. What many ask for at once is made once, and different videos
do not wait for each other.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import structlog
from anyio import to_thread

from actors.runtime.actor import Actor, Context, handles
from actors.runtime.address import Address, ask_or
from actors.video.frames import (
    FrameError,
    FrameFile,
    PictureCache,
    choose_frames,
    encode_frame,
    find_frames,
)
from actors.video.locks import KeyedLocks
from actors.video.render import (
    frames_text,
    hits_text,
    lines_text,
    node_text,
    overview_text,
    unknown_node_text,
)
from actors.video.search import SearchableTree, fused
from actors.video.search import node_text as searched_text
from actors.video.store import TreeCache, frames_folder, read_tree
from actors.video.tree import TreeError
from actors.video.vectors import (
    Matrix,
    NodeVectors,
    Passages,
    index_path,
    passages_key,
    passages_of,
    read_index,
    stacked,
    write_index,
)
from protocol.base import Scope
from protocol.embedder import Embed, EmbedFailed, EmbedUse
from protocol.settings import DataSettings, EmbeddingSettings, FrameSettings
from protocol.video import (
    Frames,
    GetOverview,
    ObserveFrames,
    Picture,
    SearchSubtitles,
    SearchTree,
    ToolRefused,
    TreeText,
    TreeUnavailable,
    ViewNode,
)

__all__ = ["Semantic", "VideoActor"]

_MAX_K = 20
_MAX_LINES = 20
_SHOWN_WARNINGS = 3
_MB = 1_000_000


class Semantic:
    """What searching by meaning needs. folder: of the index files, absolute."""

    def __init__(self, settings: EmbeddingSettings, folder: Path, embedder: Address) -> None:
        self.settings = settings
        self.folder = folder
        self.embedder = embedder


class VideoActor(Actor):
    """trees: the folder with one tree per video. semantic: None where only words are searched."""

    def __init__(
        self,
        settings: DataSettings,
        frames: FrameSettings,
        trees: Path,
        semantic: Semantic | None = None,
    ) -> None:
        self._folder = trees
        self._frames = frames
        self._search = settings.search
        self._semantic = semantic
        self._cache = TreeCache(settings.tree_cache)
        self._pictures = PictureCache(frames.cache_mb * _MB)
        self._locks = KeyedLocks()
        self._log: structlog.stdlib.BoundLogger = structlog.get_logger("video")

    async def on_start(self, context: Context) -> None:
        """Nothing to rebuild: trees are read when they are asked for."""
        self._log = context.log

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
        rankings: list[list[int]] = []
        if self._search != "embedding":
            rankings.append(await to_thread.run_sync(partial(loaded.ranked, request.query)))
        if self._search != "bm25":
            near = await self._nearest(loaded, request)
            if isinstance(near, TreeUnavailable):
                return near
            rankings.append(near)
        ranking = rankings[0] if len(rankings) == 1 else fused(rankings)
        return hits_text(request.query, loaded.distinct(ranking, request.k))

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
        if not loaded.lines:
            return ToolRefused(text="This video has no subtitles. Search its nodes instead.")
        return lines_text(request.query, lines)

    @handles(ObserveFrames)
    async def observe(self, request: ObserveFrames) -> Frames | ToolRefused | TreeUnavailable:
        """Pictures of key frames."""
        loaded = await self._load(request.video_id)
        if isinstance(loaded, TreeUnavailable):
            return loaded
        nodes = choose_frames(loaded.tree, request.node_ids)
        if isinstance(nodes, str):
            return ToolRefused(text=nodes)
        folder = frames_folder(self._folder, request.video_id)
        try:
            files = await to_thread.run_sync(partial(find_frames, folder, loaded.tree, nodes))
            if files is None:
                return ToolRefused(text="This video has no pictures; its texts are all there is.")
            urls = [await self._picture(file) for file in files]
        except FrameError as error:
            return TreeUnavailable(detail=str(error))
        pictures = tuple(
            Picture(node_id=node.node_id, start_s=node.start_s, url=url)
            for node, url in zip(nodes, urls, strict=True)
        )
        shown = tuple(node.node_id for node in nodes)
        asked = tuple(name for name in dict.fromkeys(request.node_ids) if name not in shown)
        return Frames(
            text=frames_text(loaded.tree, nodes), node_ids=(*asked, *shown), pictures=pictures
        )

    async def _load(self, video_id: str) -> SearchableTree | TreeUnavailable:
        kept = self._cache.get(video_id)
        if kept is not None:
            return kept
        async with self._locks.hold(("tree", video_id)):
            kept = self._cache.get(video_id)
            if kept is not None:
                return kept
            try:
                loaded = await to_thread.run_sync(partial(read_tree, self._folder, video_id))
            except TreeError as error:
                return TreeUnavailable(detail=str(error))
            if loaded.tree.warnings:
                self._log.warning(
                    "video.tree_warnings",
                    video_id=video_id,
                    count=len(loaded.tree.warnings),
                    first=list(loaded.tree.warnings[:_SHOWN_WARNINGS]),
                )
            self._cache.put(video_id, loaded)
            return loaded

    async def _picture(self, file: FrameFile) -> str:
        async with self._locks.hold(("picture", file)):
            kept = self._pictures.get(file)
            if kept is not None:
                return kept
            settings = self._frames
            url = await to_thread.run_sync(
                partial(encode_frame, file, settings.longest_px, settings.jpeg_quality)
            )
            self._pictures.put(file, url)
            return url

    # -- by meaning -------------------------------------------------------------------------

    async def _nearest(
        self, loaded: SearchableTree, request: SearchTree
    ) -> list[int] | TreeUnavailable:
        vectors = await self._vectors(loaded, request.video_id, request.scope)
        if isinstance(vectors, EmbedFailed):
            return _unavailable(vectors)
        wanted = await self._embed((request.query.strip(),), "query", request.scope)
        if isinstance(wanted, EmbedFailed):
            return _unavailable(wanted)
        try:
            return await to_thread.run_sync(partial(vectors.ranked, wanted[0]))
        except ValueError as error:  # another model answers under the same name
            what = f"{error}: is it another model? Then delete {self._semantic_folder}"
            return _unavailable(EmbedFailed(kind="body", fatal=True, detail=what))

    @property
    def _semantic_folder(self) -> Path:
        assert self._semantic is not None
        return self._semantic.folder

    async def _vectors(
        self, loaded: SearchableTree, video_id: str, scope: Scope
    ) -> NodeVectors | EmbedFailed:
        """The tree's vectors: kept with it, else from its file, else from the embedder."""
        assert self._semantic is not None, "a search by meaning is wired with an embedder"
        semantic = self._semantic
        async with self._locks.hold(("vectors", video_id)):
            if loaded.vectors is not None:
                return loaded.vectors
            passages, key = await to_thread.run_sync(_passages, loaded, semantic.settings)
            path = index_path(semantic.folder, semantic.settings, video_id, key)
            matrix = await to_thread.run_sync(read_index, path, key, len(passages.texts))
            if matrix is None:
                made = await self._embed_all(passages, scope)
                if isinstance(made, EmbedFailed):
                    return made
                matrix = made
                try:
                    await to_thread.run_sync(write_index, path, key, matrix)
                except OSError as error:
                    self._log.warning("video.index_unwritten", path=str(path), detail=str(error))
            node_ids = [node.node_id for node in loaded.nodes]
            loaded.vectors = NodeVectors(matrix, passages.owners, node_ids)
            return loaded.vectors

    async def _embed_all(self, passages: Passages, scope: Scope) -> Matrix | EmbedFailed:
        assert self._semantic is not None
        settings = self._semantic.settings
        portion = settings.batch * settings.concurrency
        vectors: list[bytes] = []
        for start in range(0, len(passages.texts), portion):
            texts = passages.texts[start : start + portion]
            made = await self._embed(texts, "document", scope)
            if isinstance(made, EmbedFailed):
                return made
            vectors += made
        try:
            return stacked(vectors)
        except ValueError as error:
            return EmbedFailed(kind="body", fatal=True, detail=str(error))

    async def _embed(
        self, texts: tuple[str, ...], use: EmbedUse, scope: Scope
    ) -> tuple[bytes, ...] | EmbedFailed:
        assert self._semantic is not None
        reply = await ask_or(
            self._semantic.embedder,
            Embed(texts=texts, use=use, scope=scope),
            lambda failure: EmbedFailed(kind="crash", fatal=False, detail=str(failure)),
        )
        return reply if isinstance(reply, EmbedFailed) else reply.vectors


def _passages(loaded: SearchableTree, settings: EmbeddingSettings) -> tuple[Passages, str]:
    texts = [searched_text(node) for node in loaded.nodes]
    passages = passages_of(texts, settings.chunk_chars)
    return passages, passages_key(passages, settings)


def _unavailable(failed: EmbedFailed) -> TreeUnavailable:
    return TreeUnavailable(kind=failed.kind, detail=f"embedder: {failed.detail}")
