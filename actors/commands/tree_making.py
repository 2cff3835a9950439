"""Makes a tree of a video: a small composition root, like ``actors.commands.ask_call``.

Divide the time, take the frames, have them described, put the file in its place. Each part is
kept as soon as it is finished, so that the same call goes on where the last one stopped. Never
prints, never reads a configuration.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeAlias

import anyio
import anyio.from_thread
import msgspec
from anyio import to_thread
from anyio.abc import TaskStatus
from PIL import Image

from actors.commands.progress import Progress
from actors.commands.tree_captions import CaptionPlan, Described, NotDescribed, describe
from actors.video.builder.cards import Card, plain_card
from actors.video.builder.cuts import Cut, cuts_of
from actors.video.builder.media import MediaError, frames_at, histograms, probe
from actors.video.builder.outline import Draft, drafts, tree_json
from actors.video.builder.segments import Segments, Timeline, divide
from actors.video.builder.srt import Cue
from actors.video.builder.work import Work, WorkBusy, work_key
from actors.video.tree import parse_tree
from actors.workspace.atomic import write_atomic

__all__ = ["FRAMES", "TREE", "WORK", "Failed", "Made", "Stopped", "TreePlan", "make_tree"]

TREE, WORK, FRAMES = "tree.json", "tree.work.jsonl", "frames"
_FORMAT = 1
_FRAME_QUALITY = 90
_FRAME_FILE = re.compile(r"L3_\d{3,}\.jpg")
_CUT_SHORT = 130

Say: TypeAlias = Callable[[str], None]


class TreePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is made. folder: of this video, with ``tree.json``, the frames and the work file.

    scene_s, event_s: about how long scenes and events are. frame_px: longest side of a frame.
    captions: None: nodes are not described, and say so.
    """

    video: Path
    video_id: str
    folder: Path
    domain: str
    cues: tuple[Cue, ...]
    segments: Segments
    scene_s: float
    event_s: float
    frames_per_event: int
    frame_px: int
    captions: CaptionPlan | None


class Made(msgspec.Struct, frozen=True):
    """The finished tree. asked: nodes that were described now; kept: before.

    undescribed: nodes whose cards say that they are not described.
    """

    tree: str
    scenes: int
    events: int
    frames: int
    asked: int
    kept: int
    undescribed: int


class Stopped(msgspec.Struct, frozen=True):
    """A signal ended it; what is finished is kept."""

    number: int


class Failed(msgspec.Struct, frozen=True):
    """It cannot be finished now. passing: the same call may succeed later."""

    detail: str
    passing: bool


def make_tree(plan: TreePlan, say: Say) -> Made | Stopped | Failed:
    """Make the tree or go on with it. Needs the main thread, for its signals.

    say: writes a line about how far it is.
    """
    return anyio.run(_unless_signalled, plan, say)


async def _unless_signalled(plan: TreePlan, say: Say) -> Made | Stopped | Failed:
    result: Made | Stopped | Failed = Stopped(signal.SIGINT)

    async def watch(*, task_status: TaskStatus[None]) -> None:
        nonlocal result
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as received:
            task_status.started()
            async for number in received:
                if tasks.cancel_scope.cancel_called:
                    os._exit(_CUT_SHORT)
                result = Stopped(number)
                tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        await tasks.start(watch)
        result = await _made(plan, say)
        tasks.cancel_scope.cancel()
    return result


async def _made(plan: TreePlan, say: Say) -> Made | Failed:
    try:
        plan.folder.mkdir(parents=True, exist_ok=True)
        with Work(plan.folder / WORK) as work:
            return await _all(plan, work, say)
    except (MediaError, WorkBusy) as error:
        return Failed(str(error), passing=False)
    except OSError as error:
        return Failed(f"{error.filename or plan.folder}: {error.strerror or error}", passing=False)


async def _all(plan: TreePlan, work: Work, say: Say) -> Made | Failed:
    timeline = await to_thread.run_sync(partial(_timeline, plan, work, say))
    nodes = drafts(timeline, plan.cues)
    await to_thread.run_sync(partial(_take_frames, plan, nodes, say))
    described = Described({}, 0, 0)
    if plan.captions is not None:
        found = await describe(plan.captions, nodes, plan.folder / FRAMES, work, say)
        if isinstance(found, NotDescribed):
            return Failed(found.detail, found.passing)
        described = found
    cards: dict[str, Card] = {
        node.name: plain_card(node.level, node.span.start_s, node.span.end_s, node.subtitle)
        for node in nodes
    }
    cards |= described.cards
    raw = tree_json(plan.video_id, plan.domain, timeline.duration_s, nodes, cards)
    path = plan.folder / TREE
    parse_tree(raw, str(path))
    await to_thread.run_sync(partial(write_atomic, path, raw))
    return Made(
        tree=str(path),
        scenes=len(timeline.scenes),
        events=len(timeline.events),
        frames=len(timeline.frames),
        asked=described.asked,
        kept=described.kept,
        undescribed=len(nodes) - len(described.cards),
    )


# -- in a worker thread -----------------------------------------------------------------


def _timeline(plan: TreePlan, work: Work, say: Say) -> Timeline:
    """The levels of this video: as before, or divided now. Raises MediaError."""
    status = plan.video.stat()
    sizes = (plan.segments, plan.scene_s, plan.event_s, plan.frames_per_event, plan.frame_px)
    key = work_key(_FORMAT, status.st_size, status.st_mtime_ns, *sizes)
    kept = work.timeline(key)
    if kept is not None:
        return kept
    duration_s = probe(plan.video, _check).duration_s
    cuts: list[Cut] = []
    if plan.segments == "scenes":
        alive = _scanning(duration_s, say)
        cuts = list(cuts_of(histograms(plan.video, alive)))
        alive(duration_s)
    try:
        timeline = divide(
            duration_s,
            cuts,
            scene_s=plan.scene_s,
            event_s=plan.event_s,
            frames_per_event=plan.frames_per_event,
        )
    except ValueError as error:
        raise MediaError(f"{plan.video}: {error}") from error
    # Frames of another division would pass for those of this one: they go before it is noted.
    folder = plan.folder / FRAMES
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if _FRAME_FILE.fullmatch(path.name):
            path.unlink()
    work.keep_timeline(key, timeline)
    return timeline


def _check(_: float) -> None:
    anyio.from_thread.check_cancelled()


def _scanning(duration_s: float, say: Say) -> Callable[[float], None]:
    """Says in percent of the video how far the search for cuts is."""
    progress = Progress("looking for cuts, percent", 100, say)
    percents = count(1)
    following = next(percents)

    def alive(time_s: float) -> None:
        nonlocal following
        anyio.from_thread.check_cancelled()
        while following <= 100 and time_s >= duration_s * following / 100:
            progress.step()
            following = next(percents)

    return alive


def _take_frames(plan: TreePlan, nodes: Sequence[Draft], say: Say) -> None:
    """Write the pictures that are not there yet. Raises MediaError."""
    folder = plan.folder / FRAMES
    missing = [
        node for node in nodes if node.level == 3 and not (folder / f"{node.name}.jpg").exists()
    ]
    if not missing:
        return
    progress = Progress("frames", len(missing), say)
    times = [node.span.middle_s for node in missing]
    for place, image in frames_at(plan.video, times, _check):
        image.thumbnail((plan.frame_px, plan.frame_px), Image.Resampling.LANCZOS)
        path = folder / f"{missing[place].name}.jpg"
        aside = path.with_suffix(".tmp")
        image.convert("RGB").save(aside, "JPEG", quality=_FRAME_QUALITY)
        aside.replace(path)
        progress.step()
