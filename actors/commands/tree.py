"""``bin/trm tree``: make the tree of a video, with its frames.

Only what the parser needs is imported with this module: ``--help`` and usage errors are quick.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from actors.places import as_called

if TYPE_CHECKING:
    from actors.commands.tree_captions import CaptionPlan
    from actors.commands.tree_making import Failed, Made, Stopped, TreePlan
    from actors.video.builder.srt import Cue

__all__ = ["add_tree_parser", "tree"]

DONE, FAILED, USAGE, RESUMABLE = 0, 1, 2, 75

_DESCRIPTION = """\
Makes OUT/ID/tree.json of a video: scenes of about 5 minutes, events of about 30 seconds, key
frames (OUT/ID/frames/L3_000.jpg ...), and what is said in each. A run reads it with data.trees:
OUT. With --config the nodes are described by its endpoints with the role vision: frames first,
then events from their frames, then scenes. Without, cards hold times and subtitles and say that
nobody described them."""

_EPILOG = """\
examples:
  bin/trm tree video.mp4 --subtitles video.srt --out trees
  bin/trm tree video.mp4 --subtitles video.srt --out trees --config my.yaml   with descriptions
  bin/trm tree --out trees -- -x7Yb.mp4          an id that begins with "-"; ./-x7Yb.mp4 works too
  bin/trm tree talk.mp4 --segments uniform --event-s 60 --frames 1            few, equal pieces

what is finished is kept in OUT/ID/tree.work.jsonl: after a stop, a crash or an outage the same
command goes on, and a changed option makes anew only what it concerns.
limits of the configuration hold for a video, all calls for it together (OUT/ID/tree.calls.db).

exit codes: 0 done, 1 failed, 2 usage or configuration, 75 stopped by a signal or by an outage:
start again to go on, 130 stopped at once by a second signal"""


class TreeUsageError(ValueError):
    """An argument cannot be used; the message says which and what to do."""


def add_tree_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``tree`` and its options."""
    parser = commands.add_parser(
        "tree",
        prog="bin/trm tree",
        help="make the tree of a video, with its frames",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("video", type=Path, metavar="VIDEO", help="a video file")
    parser.add_argument(
        "--out", type=Path, default=Path("trees"), metavar="DIR", help="(default: trees)"
    )
    parser.add_argument(
        "--subtitles", type=Path, metavar="FILE", help="an .srt (or .vtt) of the video"
    )
    parser.add_argument(
        "--encoding", metavar="NAME", help="of the subtitles (default: by mark, UTF-8, else cp1252)"
    )
    parser.add_argument(
        "--video-id",
        metavar="ID",
        help="as questions name the video (default: the file's name); --video-id=-x for -x",
    )
    parser.add_argument("--domain", default="unknown", help="noted in the tree (default: unknown)")
    group = parser.add_argument_group("how the time is divided")
    group.add_argument(
        "--segments",
        choices=("scenes", "uniform"),
        default="scenes",
        help="begin events where the picture changes, or all of one length (default: scenes)",
    )
    group.add_argument(
        "--scene-s", type=_seconds, default=300.0, metavar="S", help="(default: 300)"
    )
    group.add_argument("--event-s", type=_seconds, default=30.0, metavar="S", help="(default: 30)")
    group.add_argument(
        "--frames", type=_count, default=3, metavar="N", help="key frames per event (default: 3)"
    )
    group.add_argument(
        "--frame-px",
        type=_count,
        default=1024,
        metavar="N",
        help="longer side of a stored frame (default: 1024)",
    )
    group = parser.add_argument_group("descriptions, and how it is told")
    group.add_argument(
        "--config", type=Path, metavar="FILE", help="its endpoints with the role vision describe"
    )
    group.add_argument(
        "--force", action="store_true", help="replace a tree.json that this command did not make"
    )
    group.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(run=tree)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1 <= value <= 86400:
        raise argparse.ArgumentTypeError(f"{text!r}: must be seconds, from 1 to 86400")
    return value


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 8192):
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number from 1 to 8192")
    return int(text)


def tree(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    # Imported here: the rooms take longer to load than --help may take.
    from actors.commands.tree_making import Failed, Stopped, make_tree
    from actors.logs import configure_logs

    begun = time.monotonic()
    try:
        plan = plan_of(arguments)
    except (ValueError, OSError) as error:
        _note(f"bin/trm tree: {error}")
        return USAGE
    configure_logs(None, "warning", None)
    made = make_tree(plan, _note)
    if arguments.json:
        _tell_json(made, time.monotonic() - begun)
    if isinstance(made, Stopped):
        _note("stopped; what is finished is kept: the same command goes on")
        return RESUMABLE
    if isinstance(made, Failed):
        _note(f"bin/trm tree: {made.detail}")
        if made.passing:
            _note("it may pass: the same command goes on from here")
        return RESUMABLE if made.passing else FAILED
    if not arguments.json:
        sys.stdout.write(f"{made.tree}\n")
    _note(_summary(made))
    return DONE


def plan_of(arguments: argparse.Namespace, environ: Mapping[str, str] = os.environ) -> TreePlan:
    """The plan for the parsed arguments.

    Raises TreeUsageError, and ConfigError for a configuration that cannot be used; both are
    ValueErrors and say what to do.
    """
    from actors.commands.tree_making import TREE, WORK, TreePlan
    from actors.video.store import is_video_id

    video: Path = arguments.video
    if not video.is_file():
        raise TreeUsageError(f"{video}: no such file")
    if arguments.event_s > arguments.scene_s:
        raise TreeUsageError("--event-s is larger than --scene-s; scenes are made of events")
    video_id = arguments.video_id if arguments.video_id is not None else video.stem
    if not is_video_id(video_id):
        raise TreeUsageError(
            f"{video_id!a} is no usable video id (letters, digits, '_', '-', and '.' inside); "
            "name another with --video-id"
        )
    folder = arguments.out / video_id
    lone = arguments.out / f"{video_id}.json"
    if lone.exists():
        raise TreeUsageError(f"{lone}: is there and would be read instead; move it away first")
    if (folder / TREE).exists() and not (folder / WORK).exists() and not arguments.force:
        raise TreeUsageError(
            f"{folder / TREE}: is there and was not made by this command; --force replaces it"
        )
    return TreePlan(
        video=video,
        video_id=video_id,
        folder=folder,
        domain=arguments.domain,
        cues=_cues(arguments.subtitles, arguments.encoding),
        segments=arguments.segments,
        scene_s=arguments.scene_s,
        event_s=arguments.event_s,
        frames_per_event=arguments.frames,
        frame_px=arguments.frame_px,
        captions=None if arguments.config is None else _captions(arguments.config, environ),
    )


def _cues(path: Path | None, encoding: str | None) -> tuple[Cue, ...]:
    from actors.video.builder.srt import SubtitleError, parse_srt

    if path is None:
        return ()
    try:
        found = parse_srt(path.read_bytes(), encoding)
    except OSError as error:
        raise TreeUsageError(f"--subtitles {path}: cannot be read: {error.strerror}") from error
    except SubtitleError as error:
        raise TreeUsageError(f"--subtitles {path}: {error}") from error
    for note in found.notes:
        _note(f"{path}: {note} (--encoding NAME)")
    return found.cues


def _captions(path: Path, environ: Mapping[str, str]) -> CaptionPlan:
    import msgspec

    from actors.commands.tree_captions import CaptionPlan
    from actors.config import load_config
    from actors.llm.endpoints import resolve_endpoints

    config = load_config(path)
    endpoints = tuple(e for e in config.llm.endpoints if "vision" in e.roles)
    if not endpoints:
        raise TreeUsageError(
            f"{path}: no endpoint has the role vision; add it to the roles of one that sees"
        )
    if any(endpoint.base_url == "twin" for endpoint in endpoints):
        raise TreeUsageError(
            f"{path}: the simulator (base_url twin) sees nothing; name an endpoint with the role "
            "vision, or leave --config away"
        )
    try:
        resolve_endpoints(endpoints, environ, config.llm.concurrency)
    except ValueError as error:
        raise TreeUsageError(str(error)) from error
    return CaptionPlan(
        llm=msgspec.structs.replace(config.llm, endpoints=endpoints),
        limits=config.limits,
        runtime=msgspec.structs.replace(config.runtime, inject_crash=()),
        cache=msgspec.structs.replace(config.cache, backend="none"),
        frames=config.frames,
    )


# -- telling ----------------------------------------------------------------------------


def _summary(made: Made) -> str:
    nodes = made.scenes + made.events + made.frames
    line = f"{made.scenes} scenes, {made.events} events, {made.frames} key frames"
    if made.undescribed == nodes:
        return f"{line}; nobody described them (--config)"
    line += f"; {made.asked} described now, {made.kept} before"
    return f"{line}, {made.undescribed} not" if made.undescribed else line


def _tell_json(made: Made | Stopped | Failed, seconds: float) -> None:
    import msgspec

    kind = type(made).__name__.lower()
    told = {"outcome": kind, **msgspec.to_builtins(made), "seconds": round(seconds, 3)}
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def _note(text: str) -> None:
    sys.stderr.write(f"{as_called(text)}\n")
    sys.stderr.flush()
