"""The three forms that are JSON: text to raw questions, each with its place.

Nothing is skipped, guessed or cut: what cannot be read is a problem, and reading goes on
with the next line, video or file, so that one report holds them all.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from actors.dataset.errors import Problem

__all__ = ["BOM", "UTF16", "Placed", "decode", "official", "owner_folder", "printable", "rows"]

# the place of a raw question, and the question
Placed = tuple[str, object]

BOM = b"\xef\xbb\xbf"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
_ONCE = "keep a video's questions in one place"
# a string is matched first, so that a comma inside one is never touched
_STRING_OR_TRAILING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*+"|,(?=\s*[\]}])', re.DOTALL)


def rows(data: bytes, problems: list[Problem]) -> Iterator[Placed]:
    """Our own form, JSON Lines: one object a line; blank lines separate nothing."""
    for number, line in enumerate(data.removeprefix(BOM).split(b"\n"), start=1):
        if not line.strip():
            continue
        where = f"line {number}"
        for raw in _parse(line, where, problems, "write one JSON object a line"):
            yield where, raw


def official(data: bytes, problems: list[Problem]) -> Iterator[Placed]:
    """Video-MME's form: ``[{"video_id", "duration", ..., "questions": [...]}]``.

    Its published template has trailing commas. Copies that add ``url`` to a video name the
    YouTube id with it, as the Parquet file does with ``videoID``.
    """
    for videos in _parse(data, "file", problems, "download the file anew", _without_commas):
        if not isinstance(videos, list):
            what = f"expected a list of videos, got {type(videos).__name__}"
            problems.append(Problem("file", what, "give the official nested JSON"))
            return
        if _is_flat(videos):
            what = "is a list of questions, not of videos with questions"
            remedy = (
                "put each video's list into <video_id>.json and give their folder, "
                "or write one question a line into a .jsonl"
            )
            problems.append(Problem("file", what, remedy))
            return
        elements: defaultdict[str, list[str]] = defaultdict(list)
        for index, video in enumerate(videos, start=1):
            if isinstance(video, Mapping) and isinstance(video.get("video_id"), str):
                elements[video["video_id"]].append(str(index))
            yield from _of_video(video, index, problems)
        problems.extend(
            Problem(f"video {video_id}", f"stands {len(at)} times: elements {', '.join(at)}", _ONCE)
            for video_id, at in elements.items()
            if len(at) > 1
        )


def owner_folder(folder: Path, problems: list[Problem]) -> Iterator[Placed]:
    """A folder with ``<video_id>.json`` per video, each a list of its questions.

    The file's name is the video's id. Other files, folders and names with a leading dot are
    not read.
    """
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        problems.append(Problem("folder", what, "make it readable"))
        return
    files = [p for p in entries if p.suffix.lower() == ".json" and not p.name.startswith(".")]
    if not files:
        problems.append(_nothing_in(entries))
    names: defaultdict[str, list[str]] = defaultdict(list)
    for path in files:
        names[path.stem].append(printable(path.name))
        yield from _of_file(path, problems)
    problems.extend(
        Problem(f"video {printable(video_id)}", f"stands in {' and '.join(at)}", _ONCE)
        for video_id, at in names.items()
        if len(at) > 1
    )


def decode(data: bytes, where: str, problems: list[Problem]) -> str | None:
    """The text, or None after the problem was noted. where: ``file`` has its line looked up."""
    if data.startswith(UTF16):
        problems.append(Problem(where, "is UTF-16, not UTF-8", "save the file as UTF-8"))
        return None
    try:
        return data.removeprefix(BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        bad = error.object
        line = bad.count(b"\n", 0, error.start) + 1
        place = where if where.startswith("line ") else _join(where, f"line {line}")
        offset = error.start + len(data) - len(bad)
        what = f"not UTF-8: byte 0x{bad[error.start]:02x} at offset {offset}"
        problems.append(Problem(place, what, "save the file as UTF-8"))
        return None


def printable(name: str) -> str:
    """A file's name that can be written anywhere, whatever bytes it is made of."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _join(where: str, part: str) -> str:
    return part if where == "file" else f"{where}, {part}"


def _same(text: str) -> str:
    return text


def _without_commas(text: str) -> str:
    """A blank in a trailing comma's place keeps line and column of every other error true."""
    return _STRING_OR_TRAILING_COMMA.sub(
        lambda match: match.group() if match.group() != "," else " ", text
    )


def _parse(
    data: bytes,
    where: str,
    problems: list[Problem],
    remedy: str,
    prepare: Callable[[str], str] = _same,
) -> Iterator[object]:
    """The one value of a JSON text; none after its problem was noted."""
    text = decode(data, where, problems)
    if text is None:
        return

    def build(pairs: list[tuple[str, object]]) -> dict[str, object]:
        built = dict(pairs)
        if len(built) < len(pairs):  # the first value would be lost without a word
            keys = [key for key, _ in pairs]
            twice = sorted({key for key in keys if keys.count(key) > 1})
            name = built.get("question_id", built.get("video_id"))
            place = f"{where} ({name})" if isinstance(name, str) and name.isprintable() else where
            what = f"keys that stand twice in one object: {', '.join(map(ascii, twice))}"
            problems.append(Problem(place, what, "keep one of them"))
        return built

    try:
        value: object = json.loads(prepare(text), object_pairs_hook=build)
    except (ValueError, RecursionError) as error:
        problems.append(Problem(where, f"not JSON: {error}", remedy))
        return
    yield value


def _is_flat(videos: list[object]) -> bool:
    """Whether the elements are questions themselves: another form, not many problems."""
    objects = [video for video in videos if isinstance(video, Mapping)]
    return any("question" in video for video in objects) and not any(
        "questions" in video for video in objects
    )


def _of_video(video: object, index: int, problems: list[Problem]) -> Iterator[Placed]:
    where = f"video {index}"
    if not isinstance(video, Mapping):
        problems.append(Problem(where, "is no object", "write one object per video"))
        return
    name = video.get("video_id")
    if isinstance(name, str) and name.isprintable():
        where = f"video {name}"
    questions = video.get("questions")
    if not isinstance(questions, list) or not questions:
        problems.append(Problem(where, "questions is missing or empty", "add its questions"))
        return
    shared = {
        key: video[key]
        for key in ("video_id", "duration", "domain", "sub_category", "videoID")
        if key in video
    }
    if "url" in video:
        shared.setdefault("videoID", video["url"])
    for number, question in enumerate(questions, start=1):
        yield _with(question, shared, f"{where}, question {number}", "its video", problems)


def _of_file(path: Path, problems: list[Problem]) -> Iterator[Placed]:
    name = printable(path.name)
    try:
        data = path.read_bytes()
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        problems.append(Problem(name, what, "make it readable, or take it out of the folder"))
        return
    for questions in _parse(data, name, problems, "write a list of the video's questions"):
        if not isinstance(questions, list) or not questions:
            got = "an empty list" if questions == [] else type(questions).__name__
            what = f"expected a list of questions, got {got}"
            problems.append(Problem(name, what, "write a list of the video's questions"))
            return
        if any(isinstance(raw, Mapping) and "questions" in raw for raw in questions):
            what = "is Video-MME's nested JSON, not one video's questions"
            problems.append(Problem(name, what, "name this file itself, not its folder"))
            return
        for number, raw in enumerate(questions, start=1):
            place = f"{name}, question {number}"
            yield _with(raw, {"video_id": path.stem}, place, "the file's name", problems)


def _with(
    raw: object, shared: Mapping[str, object], where: str, whose: str, problems: list[Problem]
) -> Placed:
    """The question with what its video says; saying two things is a problem, null is none."""
    if not isinstance(raw, Mapping):
        return where, raw
    said = {key: value for key, value in shared.items() if value is not None or key not in raw}
    for key, value in said.items():
        if raw.get(key) not in (None, value):
            what = f"{key} is {reprlib.repr(raw[key])}, but {whose} says {reprlib.repr(value)}"
            problems.append(Problem(where, what, f"let both say the same {key}, or one alone"))
    return where, {**raw, **said}


def _nothing_in(entries: list[Path]) -> Problem:
    """What a folder without questions holds instead, since it is often one level too high."""
    known = [p for p in entries if p.is_dir() or p.suffix in (".jsonl", ".parquet")]
    names = [printable(p.name) + ("/" if p.is_dir() else "") for p in known[:5]]
    remedy = (
        f"name one of: {', '.join(names)}"
        if names
        else "give the folder with one <video_id>.json per video"
    )
    return Problem("folder", "holds no .json file", remedy)
