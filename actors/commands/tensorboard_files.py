"""Scalars as a TensorBoard event file, and where it goes. Knows the library, and no run.

A folder is what TensorBoard calls a run: it holds one file, whose name says which run of ours it
is. The file only grows, so that a TensorBoard that has it open sees what was added.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tensorboardX.proto.event_pb2 import Event
from tensorboardX.record_writer import RecordWriter
from tensorboardX.summary import scalar

from actors.commands.seed_options import OptionError
from actors.commands.tensorboard_reading import Measured
from actors.workspace.atomic import write_atomic

__all__ = ["event_file", "place"]

_VERSION = "brain.Event:2"


def event_file(run: Measured) -> tuple[str, bytes]:
    """The file's name, the same for every export of a run and of no other, and its content.

    Two runs with the same settings have the same id; they began at different times.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events"
        writer = RecordWriter(str(path))
        writer.write(Event(wall_time=run.began, file_version=_VERSION).SerializeToString())
        for one in run.scalars:
            summary = scalar(one.tag, one.value)
            event = Event(wall_time=one.wall_time, step=one.step, summary=summary)
            writer.write(event.SerializeToString())
        writer.close()
        return f"events.out.tfevents.{int(run.began)}.{run.run_id}.trm", path.read_bytes()


def place(folder: Path, name: str, data: bytes) -> str:
    """Make the file hold the data; returns what that took, in a word.

    Raises OptionError if the folder cannot be this run's; OSError.
    """
    if not folder.absolute().parent.is_dir():
        raise OptionError(f"{folder}: the folder that it would stand in is not there")
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"{folder}: is a file; name a folder")
    folder.mkdir(exist_ok=True)
    for path in sorted(folder.iterdir()):
        if "tfevents" in path.name and path.name != name and not path.name.startswith("."):
            raise OptionError(
                f"{folder}: holds event files of something else ({path.name}), which TensorBoard "
                "would draw as one run with this one; name another folder with --out"
            )
    path = folder / name
    before = path.read_bytes() if path.exists() else None
    if before == data:
        return "is up to date"
    if before is not None and data.startswith(before):
        with path.open("ab") as file:
            file.write(data[len(before) :])
        return "was added to"
    write_atomic(path, data)
    return "written"
