"""Subtitle files as they are found."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.video.builder.srt import Cue, SubtitleError, parse_srt

PLAIN = """\
1
00:00:01,000 --> 00:00:02,500
One.

2
00:01:00,000 --> 01:00:00,250
Two,
three.
"""
CUES = (Cue(1.0, 2.5, "One."), Cue(60.0, 3600.25, "Two, three."))


def cues(text: str) -> list[tuple[float, float, str]]:
    return [(cue.start_s, cue.end_s, cue.text) for cue in parse_srt(text.encode()).cues]


@pytest.mark.parametrize(
    "data",
    [
        PLAIN.encode(),
        codecs.BOM_UTF8 + PLAIN.encode(),
        PLAIN.encode("utf-16"),
        codecs.BOM_UTF16_BE + PLAIN.encode("utf-16-be"),
        PLAIN.replace("\n", "\r\n").encode(),
        PLAIN.replace("\n", "\r").encode(),
        PLAIN.replace(",000", ".000").replace(",500", ".500").replace(",250", ".250").encode(),
        PLAIN.replace("\n2\n", "\n").removeprefix("1\n").encode(),
        PLAIN.replace("2\n00", "17\n00").encode(),
        PLAIN.replace(" --> ", "-->").encode(),
        PLAIN.replace("One.", '<font color="white" size=".72c">One.</font>').encode(),
        PLAIN.replace("One.", "<i>{\\an8}One.</i>").encode(),
        PLAIN.replace("02,500", "02,500  X1:40 X2:600 Y1:20 Y2:50").encode(),
        PLAIN.rstrip().encode(),
        b"\n\n\n" + PLAIN.encode(),
        ("WEBVTT\n\n" + PLAIN.replace("00:00:01,000", "00:01.000")).encode(),
    ],
    ids=[
        "plain", "bom", "utf16", "utf16-be", "crlf", "cr", "dots", "no numbers", "wrong number",
        "no blanks", "font", "tags", "coordinates", "no end", "blank lines", "vtt",
    ],
)  # fmt: skip
def test_all_these_say_the_same(data: bytes) -> None:
    assert parse_srt(data).cues == CUES
    assert parse_srt(data).notes == ()


def test_cues_come_by_time_and_overlap_as_they_do() -> None:
    text = "00:05 --> 00:09\nlate\n\n00:01 --> 00:07\nearly\n\n00:06 --> 00:06\nat once\n"
    assert cues(text) == [(1, 7, "early"), (5, 9, "late"), (6, 6, "at once")]


def test_an_end_before_the_start_is_the_start() -> None:
    assert cues("00:05,000 --> 00:03,000\nx\n") == [(5.0, 5.0, "x")]


def test_a_number_that_is_said_is_kept() -> None:
    """Only what stands right above the next times is their number."""
    assert cues("1\n00:01 --> 00:02\n42\n\n2\n00:03 --> 00:04\n7\n") == [(1, 2, "42"), (3, 4, "7")]
    assert cues("00:01 --> 00:02\n42\n\n00:03 --> 00:04\nx\n") == [(1, 2, "42"), (3, 4, "x")]
    assert cues("00:01 --> 00:02\ncount:\n42\n00:03 --> 00:04\nx\n")[0] == (1, 2, "count: 42")


def test_empty_cues_are_none() -> None:
    text = "1\n00:01 --> 00:02\n\n2\n00:03 --> 00:04\n<b> </b>\n\n3\n00:05 --> 00:06\nx\n"
    assert cues(text) == [(5, 6, "x")]


def test_rolling_captions_say_each_line_once() -> None:
    text = (
        "00:01 --> 00:03\nso today\n\n"
        "00:03 --> 00:05\nso today\nwe bake\n\n"
        "00:05 --> 00:07\nwe bake\nfine bread\n\n"
        "00:06 --> 00:08\nwe bake\nfine bread\n\n"
        "00:20 --> 00:22\nfine bread\n"
    )
    assert [said for _, _, said in cues(text)] == [
        "so today",
        "we bake",
        "fine bread",
        "fine bread",
    ]


def test_a_word_that_is_said_twice_is_said_twice() -> None:
    assert len(cues("00:01 --> 00:02\nNo!\n\n00:02 --> 00:03\nNo!\n")) == 2


def test_an_old_encoding_is_guessed_and_said_or_given() -> None:
    text = "00:01 --> 00:02\ncafé\n"
    guessed = parse_srt(text.encode("cp1252"))
    assert guessed.cues[0].text == "café"
    assert "Windows-1252" in guessed.notes[0]
    given_ = parse_srt("00:01 --> 00:02\n说\n".encode("gb18030"), "gb18030")
    assert (given_.cues[0].text, given_.notes) == ("说", ())


@pytest.mark.parametrize(
    ("data", "encoding"),
    [(b"", None), (b"hello\n\nworld", None), (b"{}", None), (b"\xff\xfe\x00", None),
     (b"x", "nonsense"), ("00:01 --> 00:02\nä".encode("cp1252"), "utf-8")],
)  # fmt: skip
def test_what_is_no_subtitle_file_is_refused(data: bytes, encoding: str | None) -> None:
    with pytest.raises(SubtitleError):
        parse_srt(data, encoding)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        found = parse_srt(b"00:01 --> 00:02\nx\n\n" + data)
    except SubtitleError:
        return
    assert found.cues


_words = st.text("abc ?!é说", min_size=1, max_size=12).map(str.strip).filter(bool)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 10**7), st.integers(1, 9999), _words), min_size=1, max_size=9)
)
def test_what_a_file_says_is_read_back(said: list[tuple[int, int, str]]) -> None:
    """Cues apart from each other, to the millisecond, whatever their order in the file."""
    starts = {start // 20_000 * 20_000: (length, text) for start, length, text in said}
    blocks, wanted = [], []
    for number, (start, (length, text)) in enumerate(starts.items(), start=1):
        blocks.append(f"{number}\n{_stamp(start)} --> {_stamp(start + length)}\n{text}\n")
        wanted.append(Cue(start / 1000, (start + length) / 1000, " ".join(text.split())))
    found = parse_srt("\n".join(blocks).encode()).cues
    assert found == tuple(sorted(wanted, key=lambda cue: cue.start_s))


def _stamp(ms: int) -> str:
    seconds, ms = divmod(ms, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d},{ms:03d}"
