"""Decoding real files that the tests make."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from actors.video.builder.cuts import cuts_of
from actors.video.builder.media import MediaError, frames_at, histograms, probe
from tests.video.builder.movies import COLOURS, SHOT_S, movie


def alive(_: float) -> None:
    """Goes on."""


@pytest.fixture(scope="module", params=["mpeg4", "libx264"])
def video(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five shots, also with frames that are coded after later ones (B frames of H.264)."""
    codec: str = request.param
    return movie(tmp_path_factory.mktemp("video") / "-x y.mp4", 35, codec=codec)


def shot_of(image: Image.Image) -> int:
    """Which shot a picture is of, by its colour."""
    corner = np.asarray(image.convert("RGB"))[80:, :20].reshape(-1, 3).mean(axis=0)
    distances = [float(np.abs(corner - np.array(colour)).sum()) for colour in COLOURS]
    assert min(distances) < 40
    return distances.index(min(distances))


def test_a_file_tells_its_length_and_size(video: Path) -> None:
    found = probe(video, alive)
    assert found.duration_s == pytest.approx(35.0, abs=0.2)
    assert (found.width, found.height) == (160, 90)


def test_cuts_are_found_where_the_shots_change(video: Path) -> None:
    found = [cut.time_s for cut in cuts_of(histograms(video, alive))]
    assert found == pytest.approx([SHOT_S * shot for shot in range(1, 5)], abs=0.5)


def test_the_frame_at_a_time_is_of_that_time_near_and_far(video: Path) -> None:
    """Steps by decoding on, jumps by seeking, two at one place, and past the end."""
    for times, shots in (
        ([0.0, 1.0, 8.0, 9.0, 22.0, 33.0], [0, 0, 1, 1, 3, 4]),
        ([30.0], [4]),
        ([6.8, 7.1, 27.9, 28.2, 28.2, 400.0], [0, 1, 3, 4, 4, 4]),
    ):
        found = list(frames_at(video, times, alive))
        assert [place for place, _ in found] == list(range(len(times)))
        assert [shot_of(image) for _, image in found] == shots
        assert found[0][1].size == (160, 90)


def test_a_long_way_is_jumped(tmp_path: Path) -> None:
    """MPEG-4 has a key frame every dozen frames: 30 seconds are not decoded to see the last."""
    decoded: list[float] = []
    path = movie(tmp_path / "x.mp4", 35)
    assert [shot_of(image) for _, image in frames_at(path, [33.0], decoded.append)] == [4]
    assert len(decoded) < 40


def test_what_alive_raises_ends_the_work(video: Path) -> None:
    class Enough(Exception):
        pass

    def enough(time_s: float) -> None:
        if time_s > 3:
            raise Enough

    with pytest.raises(Enough):
        list(histograms(video, enough))
    with pytest.raises(Enough):
        list(frames_at(video, [9.0], enough))


def test_damage_in_the_middle_costs_frames_not_the_video(tmp_path: Path) -> None:
    path = movie(tmp_path / "x.mp4", 21)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 400] = bytes(400)
    path.write_bytes(data)
    assert len(list(histograms(path, alive))) > 40
    assert len(list(frames_at(path, [1.0, 20.0], alive))) == 2


@pytest.mark.parametrize("data", [b"", b"no video", b"\x00\x00\x00\x18ftypmp42" + bytes(100)])
def test_what_is_no_video_is_refused_by_name(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.mp4"
    path.write_bytes(data)
    for work in (
        lambda: probe(path, alive),
        lambda: list(histograms(path, alive)),
        lambda: list(frames_at(path, [1.0], alive)),
    ):
        with pytest.raises(MediaError, match=r"x\.mp4"):
            work()
    with pytest.raises(MediaError, match="No such file"):
        probe(tmp_path / "gone.mp4", alive)


def test_a_name_that_looks_like_an_address_is_a_file(tmp_path: Path) -> None:
    path = movie(tmp_path / "http:x.mp4", 1)
    assert probe(path, alive).duration_s == pytest.approx(1.0, abs=0.2)


def test_a_picture_alone_has_no_time_to_divide(tmp_path: Path) -> None:
    """FFmpeg reads a picture as a video of a single frame."""
    Image.new("RGB", (64, 36)).save(tmp_path / "x.png")
    assert probe(tmp_path / "x.png", alive).duration_s < 0.1


def test_without_pyav_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MediaError, match="extra named video"):
        probe(tmp_path / "x.mp4", alive)
