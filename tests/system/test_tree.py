"""``bin/trm tree`` on real videos, with real files, sockets and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import anyio
import pytest
import structlog
from PIL import Image

from actors.config import ROOT
from actors.main import main
from actors.video.actor import VideoActor
from actors.video.tree import Tree, parse_tree
from protocol.video import Frames, ObserveFrames
from tests.llm.server import answer
from tests.system.asking import nobody, status
from tests.system.seeing import Question, card_of, config_of, seeing
from tests.video.builder.movies import movie
from tests.video.test_actor import FRAMES, settings

SRT = """\
1
00:00:01,000 --> 00:00:03,500
<font color="white" size=".72c">Red it is.</font>

00:00:30.000 --> 00:00:32.000
Yellow now.
"""
NODES = {"scene_summary": 1, "event_description": 2, "frame_summary": 4}
"""Of the video below, with two key frames per event."""


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    """The command sets logging up for its process: leave it as it was."""
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


@pytest.fixture(scope="session")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """49 seconds, seven shots, and its subtitles beside it."""
    folder = tmp_path_factory.mktemp("movies")
    (folder / "-x7.srt").write_text(SRT)
    return movie(folder / "-x7.mp4", 49)


class Command:
    """Runs ``bin/trm tree`` in this process, in a folder of its own."""

    def __init__(self, video: Path, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.video = video
        self.out_folder = folder / "trees"
        self.out, self.err = "", ""
        self._capture = capture

    @property
    def arguments(self) -> list[str]:
        subtitles = str(self.video.with_suffix(".srt"))
        return ["--out", str(self.out_folder), "--subtitles", subtitles, "--frames", "2"]

    def __call__(self, *more: str, expect: int = 0) -> None:
        self.raw(*self.arguments, *more, str(self.video), expect=expect)

    def raw(self, *arguments: str, expect: int) -> None:
        """With nothing but these arguments."""
        try:
            code = main(["tree", *arguments])
        except SystemExit as left:  # the parser's way
            code = int(left.code or 0)
        self.out, self.err = self._capture.readouterr()
        assert code == expect, f"exit {code}\n{self.out}\n{self.err}"
        assert "Traceback" not in self.err

    @property
    def folder(self) -> Path:
        return self.out_folder / "-x7"

    @property
    def tree(self) -> Tree:
        return parse_tree((self.folder / "tree.json").read_bytes(), "tree.json")

    @property
    def summaries(self) -> list[str]:
        return [node.summary for node in self.tree.nodes.values()]


@pytest.fixture
def tree(video: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command."""
    return Command(video, tmp_path, capsys)


# -- without descriptions ---------------------------------------------------------------


def test_a_video_and_its_subtitles_become_a_tree(tree: Command) -> None:
    """Events begin at cuts, everything is inside what is above it, cards are honest."""
    tree()
    assert tree.out == f"{tree.folder / 'tree.json'}\n"
    assert "nobody described them" in tree.err
    made = tree.tree
    assert made.warnings == ()
    assert made.video_id == "-x7"
    assert made.duration_s == pytest.approx(49, abs=0.2)
    levels = [node.level for node in made.nodes.values()]
    assert [levels.count(level) for level in (1, 2, 3)] == list(NODES.values())
    second = made.nodes["-x7_L2_001"]
    assert second.start_s % 7 == pytest.approx(0, abs=0.3)
    assert second.subtitle == "Yellow now."
    assert "not described) Said: Yellow now." in second.summary
    assert "font" not in made.nodes["-x7_L1_000"].subtitle
    frames = sorted(path.name for path in (tree.folder / "frames").iterdir())
    assert frames == [f"L3_{number:03d}.jpg" for number in range(4)]


def test_the_video_room_reads_what_was_made(tree: Command) -> None:
    tree()

    async def observe() -> object:
        actor = VideoActor(settings(), FRAMES, tree.out_folder)
        return await actor.observe(ObserveFrames(video_id="-x7", node_ids=("-x7_L2_001",)))

    shown = anyio.run(observe)
    assert isinstance(shown, Frames)
    assert [picture.node_id for picture in shown.pictures] == ["-x7_L3_002", "-x7_L3_003"]


def test_a_name_that_begins_with_a_dash(tree: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree.video.parent)
    for video in (["--", "-x7.mp4"], ["./-x7.mp4"]):
        tree.raw("--out", str(tree.out_folder), "--segments", "uniform", *video, expect=0)
        assert tree.tree.video_id == "-x7"
    tree.raw("--out", str(tree.out_folder), "--video-id=-y", "--", "-x7.mp4", expect=0)
    assert (tree.out_folder / "-y" / "tree.json").exists()


def test_a_second_call_decodes_nothing_and_another_option_makes_all_anew(tree: Command) -> None:
    tree()
    before = (tree.folder / "tree.json").read_bytes()
    kept = (tree.folder / "frames" / "L3_000.jpg").stat().st_mtime_ns
    tree()
    assert (tree.folder / "tree.json").read_bytes() == before
    assert (tree.folder / "frames" / "L3_000.jpg").stat().st_mtime_ns == kept
    assert "cuts" not in tree.err
    tree("--frames", "1", "--frame-px", "32")
    assert len(list((tree.folder / "frames").iterdir())) == 2
    with Image.open(tree.folder / "frames" / "L3_001.jpg") as image:
        assert image.size == (32, 18)


def test_a_frame_that_is_gone_is_taken_again(tree: Command) -> None:
    tree()
    (tree.folder / "frames" / "L3_001.jpg").unlink()
    tree()
    assert (tree.folder / "frames" / "L3_001.jpg").exists()


def test_json_is_one_object(tree: Command) -> None:
    tree("--json")
    told = json.loads(tree.out)
    assert (told["outcome"], told["scenes"], told["events"], told["frames"]) == ("made", 1, 2, 4)
    assert told["undescribed"] == 7
    (tree.video.parent / "broken.mp4").write_bytes(b"nothing")
    tree.raw(
        "--json", "--out", str(tree.out_folder), str(tree.video.parent / "broken.mp4"), expect=1
    )
    told = json.loads(tree.out)
    assert (told["outcome"], told["passing"]) == ("failed", False)
    assert "broken.mp4" in told["detail"]


# -- with descriptions ------------------------------------------------------------------


def test_frames_are_described_first_then_events_then_scenes(tree: Command, tmp_path: Path) -> None:
    with seeing() as server:
        tree("--config", str(config_of(tmp_path, server.base_url)))
    assert server.kinds == NODES
    kinds = [question.kind for question in server.questions]
    assert kinds[-1] == "scene_summary"
    assert all(q.pictures == (q.kind == "frame_summary") for q in server.questions)
    scene = server.questions[-1]
    assert "What is seen at" in scene.text
    assert "Red it is." in scene.text
    assert all(summary.startswith("What is seen at") for summary in tree.summaries)
    assert "7 described now, 0 before" in tree.err
    assert "described: 7/7 (100%)" in tree.err


def test_a_finished_node_is_not_asked_again(tree: Command, tmp_path: Path) -> None:
    """A key that is refused in the middle: mended, the same command goes on."""
    refused = status("401 Unauthorized", '{"error": {"message": "no such key"}}')
    with seeing(lambda question, n: card_of(question) if n <= 3 else refused) as server:
        config = config_of(tmp_path, server.base_url, concurrency=1)
        tree("--config", str(config), expect=1)
    assert "auth: " in tree.err
    assert "3 of 7 nodes are described and kept" in tree.err
    assert not (tree.folder / "tree.json").exists()
    with seeing() as server:
        tree("--config", str(config_of(tmp_path, server.base_url)))
        assert len(server.questions) == 4
        tree("--config", str(config_of(tmp_path, server.base_url)))
        assert len(server.questions) == 4
    assert "0 described now, 7 before" in tree.err


def test_a_tree_without_descriptions_can_be_given_them(tree: Command, tmp_path: Path) -> None:
    tree()
    with seeing() as server:
        tree("--config", str(config_of(tmp_path, server.base_url)))
    assert server.kinds == NODES
    assert all(summary.startswith("What is seen at") for summary in tree.summaries)


def test_limits_hold_for_all_calls_of_a_video_together(tree: Command, tmp_path: Path) -> None:
    """Started again, the command goes on counting where it was."""

    def config(most: int, base_url: str) -> str:
        path = config_of(tmp_path, base_url, concurrency=1)
        path.write_text(f"{path.read_text()}\nlimits: {{max_calls: {most}}}\n")
        return str(path)

    with seeing() as server:
        tree("--config", config(3, server.base_url), expect=75)
        assert "limits.max_calls = 3: 3 calls were made for this video; raise it in" in tree.err
        tree("--config", config(3, server.base_url), expect=75)
        assert len(server.questions) == 3
        tree("--config", config(7, server.base_url))
        assert len(server.questions) == 7
    assert sorted(path.name for path in tree.folder.iterdir()) == [
        "frames",
        "tree.calls.db",
        "tree.json",
        "tree.work.jsonl",
    ]


def test_an_endpoint_that_is_down_ends_resumable(tree: Command, tmp_path: Path) -> None:
    with nobody() as base_url:
        tree("--config", str(config_of(tmp_path, base_url)), expect=75)
    assert "the same command goes on" in tree.err


def test_what_is_above_a_node_that_an_endpoint_failed_waits_for_it(
    tree: Command, tmp_path: Path
) -> None:
    """An event that was described without one of its frames would have to be paid for again."""

    def reply(question: Question, _: int) -> bytes:
        first = question.kind == "frame_summary" and question.time_range.startswith("0-")
        return status("503 Busy") if first else card_of(question)

    with seeing(reply) as server:
        config = config_of(tmp_path, server.base_url, breaker_failures=50)
        tree("--config", str(config), expect=75)
    assert server.kinds == {"frame_summary": 3 + 2, "event_description": 1}
    assert "server_error: " in tree.err
    assert "4 of 7 nodes are described and kept" in tree.err
    with seeing() as server:
        tree("--config", str(config_of(tmp_path, server.base_url)))
    assert server.kinds == {"frame_summary": 1, "event_description": 1, "scene_summary": 1}


def test_a_reply_that_cannot_be_read_is_asked_again_and_then_left(
    tree: Command, tmp_path: Path
) -> None:
    """One frame is never described: its card says so. The next time it is asked again, and what
    is above it as far as anything changed for it: here the event, whose card comes out the same."""

    def reply(question: Question, _: int) -> bytes:
        first = question.kind == "frame_summary" and question.time_range.startswith("0-")
        return answer("I see a square.") if first else card_of(question)

    with seeing(reply) as server:
        tree("--config", str(config_of(tmp_path, server.base_url)))
    assert server.kinds["frame_summary"] == 4 + 2
    assert sum(question.again for question in server.questions) == 2
    assert "L3_000 is not described: the reply holds no JSON object" in tree.err
    assert "6 described now, 0 before, 1 not" in tree.err
    assert "not described) Said: Red it is." in tree.tree.nodes["-x7_L3_000"].summary
    with seeing() as server:
        tree("--config", str(config_of(tmp_path, server.base_url)))
    assert server.kinds == {"frame_summary": 1, "event_description": 1}


def test_replies_cut_off_or_filtered_are_no_cards(tree: Command, tmp_path: Path) -> None:
    def reply(question: Question, _: int) -> bytes:
        if question.kind == "scene_summary":
            return answer('{"scene_summary": "all of', finish="length")
        if question.kind == "frame_summary" and question.time_range.startswith("0-"):
            return answer("", finish="content_filter")
        return card_of(question)

    with seeing(reply) as server:
        tree("--config", str(config_of(tmp_path, server.base_url)))
    assert server.kinds["scene_summary"] == 3
    assert "L3_000 is not described: the endpoint's filter refused it" in tree.err
    assert "L1_000 is not described: it was cut off at the token limit" in tree.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_with_75_and_the_same_command_goes_on(
    tree: Command, tmp_path: Path, number: signal.Signals
) -> None:
    with seeing(lambda question, n: card_of(question) if n <= 5 else b"") as server:
        config = config_of(tmp_path, server.base_url, concurrency=1)
        command = [sys.executable, "-m", "actors.main", "tree", *tree.arguments]
        process = subprocess.Popen(
            [*command, "--config", str(config), str(tree.video)],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert server.stalled.wait(50)
        process.send_signal(number)
        out, err = process.communicate(timeout=50)
    assert (process.returncode, out) == (75, "")
    assert err.splitlines()[-1].startswith("stopped; what is finished is kept")
    assert "Traceback" not in err
    with seeing() as server:
        tree("--config", str(config_of(tmp_path, server.base_url)))
    assert len(server.questions) == 2


# -- what cannot be ---------------------------------------------------------------------


def test_usage_errors_write_nothing(tree: Command, tmp_path: Path) -> None:
    out = ["--out", str(tree.out_folder)]
    video = str(tree.video)
    bad = tmp_path / "bad.srt"
    bad.write_text("nothing in here")
    with seeing() as server:
        keyed = config_of(tmp_path, server.base_url, name="keyed.yaml")
        text = keyed.read_text().replace(
            "model: sees", "model: sees\n    api_key_env: NOT_SET_AT_ALL"
        )
        keyed.write_text(text)
        for arguments, told in (
            ([*out, str(tmp_path / "gone.mp4")], "gone.mp4: no such file"),
            ([*out, "--event-s", "60", "--scene-s", "30", video], "larger than --scene-s"),
            ([*out, "--event-s", "0", video], "from 1 to 86400"),
            ([*out, "--frames", "x", video], "whole number"),
            ([*out, "--video-id", "a/b", video], "no usable video id"),
            ([*out, "--subtitles", str(bad), video], "bad.srt: holds no cue"),
            ([*out, "--subtitles", str(tmp_path / "no.srt"), video], "cannot be read"),
            ([*out, "--config", str(tmp_path / "no.yaml"), video], "no.yaml: no such file"),
            ([*out, "--config", str(ROOT / "config/default.yaml"), video], "sees nothing"),
            ([*out, "--config", str(keyed), video], "NOT_SET_AT_ALL is not set"),
        ):
            tree.raw(*arguments, expect=2)
            assert told in tree.err
            assert tree.out == ""
    assert not tree.out_folder.exists()
    assert server.questions == []


def test_somebody_elses_tree_is_not_replaced(tree: Command) -> None:
    tree.folder.mkdir(parents=True)
    (tree.folder / "tree.json").write_text("the owner's")
    tree(expect=2)
    assert "--force replaces it" in tree.err
    assert (tree.folder / "tree.json").read_text() == "the owner's"
    tree("--force")
    assert tree.tree.roots
    (tree.out_folder / "-x7.json").write_text("would be read instead")
    tree("--force", expect=2)


def test_two_at_once_do_not_mix(tree: Command) -> None:
    from actors.video.builder.work import Work

    tree.folder.mkdir(parents=True)
    with Work(tree.folder / "tree.work.jsonl"):
        tree(expect=1)
    assert "another process makes this tree" in tree.err


def test_without_pyav_it_says_what_to_install(
    tree: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cast("dict[str, object]", sys.modules), "av", None)
    tree(expect=1)
    assert "extra named video" in tree.err
