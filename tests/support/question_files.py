"""Writes questions as each of the four forms that can be read, for tests."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from protocol.dataset import Question

__all__ = ["FORMS", "write_jsonl", "write_official", "write_owner_layout", "write_parquet"]

_DESCRIBED = ("duration", "domain", "sub_category")


def write_official(
    folder: Path, questions: Iterable[Question], youtube: Mapping[str, str] | None = None
) -> Path:
    """``videos.json``: the nested JSON, labelled options, trailing commas as in its template.

    youtube: YouTube ids by video id, written as ``url`` as some copies do; None: none are.
    """
    videos = []
    for video_id, members in _by_video(questions).items():
        video: dict[str, object] = {"video_id": video_id}
        video |= {key: getattr(members[0], key) for key in _DESCRIBED if getattr(members[0], key)}
        if youtube is not None:
            video["url"] = youtube[video_id]
        asked = ",\n    ".join(
            json.dumps(_asked(question) | {"response": ""}, ensure_ascii=False)[:-1] + ",}"
            for question in members
        )
        head = json.dumps(video, ensure_ascii=False)[:-1]
        videos.append(f'  {head}, "questions": [\n    {asked},\n  ],}},\n')
    path = folder / "videos.json"
    path.write_text("[\n" + "".join(videos) + "]\n", encoding="utf-8")
    return path


def write_parquet(
    folder: Path, questions: Iterable[Question], youtube: Mapping[str, str] | None = None
) -> Path:
    """``test-00000-of-00001.parquet`` with the columns of the Hugging Face data set."""
    import pyarrow
    from pyarrow import parquet

    rows = []
    for question in questions:
        medium = (youtube or {}).get(question.video_id, f"yt-{question.video_id}")
        row: dict[str, object] = {"video_id": question.video_id}
        row |= {key: getattr(question, key) for key in _DESCRIBED}
        row |= {"url": f"watch?v={medium}", "videoID": medium}
        rows.append(row | _asked(question))
    path = folder / "test-00000-of-00001.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def write_owner_layout(
    folder: Path, questions: Iterable[Question], youtube: Mapping[str, str] | None = None
) -> Path:
    """The folder ``Video-MME`` with ``<video_id>.json`` each: five keys, no descriptions."""
    home = folder / "Video-MME"
    home.mkdir()
    for video_id, members in _by_video(questions).items():
        text = json.dumps([_asked(question) for question in members], ensure_ascii=False, indent=2)
        (home / f"{video_id}.json").write_text(text, encoding="utf-8")
    return home


def write_jsonl(
    folder: Path, questions: Iterable[Question], youtube: Mapping[str, str] | None = None
) -> Path:
    """``questions.jsonl``: our own form, options without labels."""
    path = folder / "questions.jsonl"
    with path.open("wb") as file:
        for question in questions:
            built: dict[str, object] = msgspec.to_builtins(question)
            del built["type"]
            file.write(msgspec.json.encode(built) + b"\n")
    return path


FORMS = {
    "official": write_official,
    "parquet": write_parquet,
    "owner": write_owner_layout,
    "jsonl": write_jsonl,
}
"""Every form's writer by its name."""


def _asked(question: Question) -> dict[str, object]:
    letters = zip("ABCDEFGH", question.options, strict=False)
    return {
        "question_id": question.question_id,
        "task_type": question.task_type,
        "question": question.question,
        "options": [f"{letter}. {body}" for letter, body in letters],
        "answer": question.answer,
    }


def _by_video(questions: Iterable[Question]) -> dict[str, list[Question]]:
    videos: defaultdict[str, list[Question]] = defaultdict(list)
    for question in questions:
        videos[question.video_id].append(question)
    return dict(videos)
