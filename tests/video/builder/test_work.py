"""The work file: what is finished stays, half a line does not, one process at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.video.builder.segments import divide
from actors.video.builder.work import Work, WorkBusy, work_key

TIMELINE = divide(100.0, [], scene_s=300, event_s=30, frames_per_event=2)


def test_what_was_kept_is_there_again(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    with Work(path) as work:
        assert work.card("a") is None
        work.keep_card("a", {"frame_summary": "é", "visible_text": ["x"]})
        work.keep_timeline("t", TIMELINE)
        assert work.timeline("t") == TIMELINE
    with Work(path) as work:
        assert work.card("a") == {"frame_summary": "é", "visible_text": ["x"]}
        assert work.timeline("t") == TIMELINE
        assert work.timeline("other") is None
        work.keep_timeline("other", TIMELINE)
    with Work(path) as work:  # the frames on disk are those of the last one
        assert work.timeline("t") is None


def test_at_whatever_byte_a_process_dies_whole_lines_stay(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    with Work(path) as work:
        work.keep_card("a", {"frame_summary": "one"})
        work.keep_card("b", {"frame_summary": "two"})
    whole = path.read_bytes()
    first = whole.index(b"\n")
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with Work(path) as work:
            assert (work.card("a") is not None) == (length >= first)
            assert (work.card("b") is not None) == (length >= len(whole) - 1)
            work.keep_card("c", {"frame_summary": "three"})
        with Work(path) as work:
            assert work.card("c") is not None
            assert (work.card("a") is not None) == (length >= first)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    with Work(path), pytest.raises(WorkBusy, match="another process"), Work(path):
        pass
    with Work(path):
        pass


def test_the_key_follows_every_part() -> None:
    assert work_key(1, "a", TIMELINE) == work_key(1, "a", TIMELINE)
    assert len({work_key("ab", "c"), work_key("a", "bc"), work_key("abc")}) == 3
