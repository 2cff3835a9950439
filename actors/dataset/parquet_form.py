"""Video-MME's Parquet file, as the Hugging Face data set has it: one question a row.

Columns: video_id, question_id, task_type, question, options, answer; domain, sub_category
and duration if they are there. ``video_id`` (``601``) is the video's id here, as in the
official JSON and in the owner's folders, so trees are named by it. ``videoID`` and ``url``
name the media on YouTube; ``videoID`` is only used to see that no video has two ids.

pyarrow reads it. It is an extra, imported when such a file is met and not before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from actors.dataset.errors import Problem
from actors.dataset.json_forms import Placed

if TYPE_CHECKING:
    import pyarrow

__all__ = ["MAGIC", "table_rows"]

MAGIC = b"PAR1"
_WANTED = ("video_id", "question_id", "task_type", "question", "options", "answer")
_DESCRIBED = ("domain", "sub_category", "duration", "videoID")


def table_rows(data: bytes, problems: list[Problem]) -> Iterator[Placed]:
    """The rows of a Parquet file. A column that is missing is one problem, not one per row."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        what = f"is Parquet, which needs pyarrow ({error})"
        problems.append(Problem("file", what, _install()))
        return
    try:
        source = parquet.ParquetFile(pyarrow.BufferReader(data))
        names = list(source.schema_arrow.names)
        if not _columns_fit(names, problems):
            return
        table = source.read(columns=[name for name in (*_WANTED, *_DESCRIBED) if name in names])
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        problems.append(Problem("file", f"not readable Parquet: {error}", "download it anew"))
        return
    try:
        found: list[dict[str, object]] = table.to_pylist()
    except UnicodeDecodeError:
        found = list(_cell_by_cell(table, problems))
    for number, row in enumerate(found, start=1):
        yield f"row {number}", row


def _install() -> str:
    wanted = f"--python {sys.executable} 'pyarrow>=20'"
    return (
        f"install it: uv pip install {wanted} (or {sys.executable} -m pip install 'pyarrow>=20'; "
        "it is the extra named videomme)"
    )


def _columns_fit(names: list[str], problems: list[Problem]) -> bool:
    before = len(problems)
    for name in _WANTED:
        if names.count(name) != 1:
            what = "is missing" if name not in names else "stands twice"
            remedy = f"give a file with one column {name}; this one has {', '.join(names)}"
            problems.append(Problem(f"column {name}", what, remedy))
    return len(problems) == before


def _cell_by_cell(table: pyarrow.Table, problems: list[Problem]) -> Iterator[dict[str, object]]:
    """The slow way, for a file that holds bytes where it promises text: every bad cell."""
    for index in range(table.num_rows):
        row: dict[str, object] = {}
        for name in table.column_names:
            try:
                row[name] = table.column(name)[index].as_py()
            except UnicodeDecodeError as error:
                what = f"{name} is not UTF-8: byte 0x{error.object[error.start]:02x}"
                problems.append(Problem(f"row {index + 1}", what, "write the file anew as UTF-8"))
        yield row
