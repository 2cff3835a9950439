"""Every line has one origin, and a line that never changed is the seed's."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.commands.blame_lines import Author, Change, aligned, blame_lines, lines_of
from actors.evolver.patch import Limits, apply_edits
from protocol.evolver import Edit

ROOMY = Limits(edits=100, max_chars=100_000, max_growth=100.0)

_WORDS = st.sampled_from(["", "a", "b", "c", "- a", "long line of words", "<!-- X -->", "## b"])
_LINES = st.lists(_WORDS, max_size=12)
_AUTHORS = st.lists(
    st.builds(Author, key=st.sampled_from(["k1", "k2", "k3"]), target=_WORDS, content=_WORDS),
    min_size=1,
    max_size=3,
)


def changed(after: str, *contents: str) -> Change:
    return Change(
        after, tuple(Author(f"k{index}", "", content) for index, content in enumerate(contents))
    )


@given(st.lists(_LINES, min_size=1, max_size=5), st.data())
def test_every_line_has_one_origin(texts: list[list[str]], data: st.DataObject) -> None:
    """Whatever the texts are: one origin a line, and none that is no edit of the chain."""
    changes = [Change("\n".join(lines), tuple(data.draw(_AUTHORS))) for lines in texts[1:]]
    origins = blame_lines("\n".join(texts[0]), changes)
    last = changes[-1].after if changes else "\n".join(texts[0])
    assert len(origins) == len(lines_of(last))
    known = {author.key for change in changes for author in change.authors}
    assert set(origins) <= known | {None}


@given(_LINES, st.lists(st.tuples(st.integers(0, 12), _WORDS), max_size=6))
def test_a_line_that_never_changed_is_the_seeds(
    seed: list[str], inserted: list[tuple[int, str]]
) -> None:
    """Insertions, duplicates of the seed's lines among them, take no line from the seed."""
    lines = list(seed)
    for place, line in inserted:
        lines.insert(min(place, len(lines)), line)
    after = "".join(f"{line}\n" for line in lines)
    origins = blame_lines("".join(f"{line}\n" for line in seed), [changed(after, "x")])
    assert origins.count(None) == len(seed)


@given(_LINES, _LINES)
def test_alignment_is_sound_and_symmetric_in_length(before: list[str], after: list[str]) -> None:
    """Pairs ascend on both sides and hold equal lines; no order of the texts finds more."""
    pairs = aligned(before, after)
    assert all(before[i] == after[j] for i, j in pairs)
    for (i, j), (next_i, next_j) in pairwise(pairs):
        assert i < next_i
        assert j < next_j
    assert len(pairs) == len(aligned(after, before))
    assert len(aligned(before, before)) == len(before)


_SENTENCES = st.lists(
    st.text("abcdefgh ", min_size=6, max_size=20).map(lambda text: f"- w{text.strip()}z"),
    min_size=2,
    max_size=8,
    unique=True,
)


@given(_SENTENCES, st.integers(1, 6))
def test_edits_of_the_engine_are_found_again(sentences: list[str], cut: int) -> None:
    """What the patch engine inserts is attributed to the edit that held it."""
    cut = min(cut, len(sentences) - 1)
    seed = "---\nname: x\n---\n\n" + "\n".join(sentences[:cut]) + "\n"
    text, changes, expected = seed, [], {}
    for number, sentence in enumerate(sentences[cut:]):
        op: tuple[str, str] = ("insert_after", sentences[0]) if number % 2 else ("append", "")
        edit = Edit(op=op[0], target=op[1], content=sentence, support=(), reason="")  # type: ignore[arg-type]
        patched = apply_edits(text, [edit], ROOMY, screen=lambda _: None)
        if not patched.applied:
            continue
        text = patched.text
        key = f"e{number}"
        expected[sentence] = key
        changes.append(Change(text, (Author(key, edit.target, edit.content),)))
    found = dict(zip(lines_of(text), blame_lines(seed, changes), strict=True))
    assert {line: key for line, key in found.items() if key is not None and line} == expected


def test_a_line_goes_to_the_edit_that_holds_it() -> None:
    """Whole lines first, then parts of a line, then a line inside a part."""
    after = "one two three\nsix seven\nnine"
    origins = blame_lines("zero", [changed(after, "nine lives", "two three", "six seven")])
    assert origins == ["k1", "k2", "k0"]


def test_what_no_edit_holds_goes_with_its_neighbour() -> None:
    """Blank lines, markers and headings belong to the text behind them, else before."""
    after = "seed\n\n<!-- APPENDIX_START -->\n## Reminders\n\n- Mind it.\n<!-- APPENDIX_END -->\n"
    origins = blame_lines("seed\n", [changed(after, "- Other.", "Mind it.")])
    assert origins == [None, "k1", "k1", "k1", "k1", "k1", "k1"]


def test_a_word_that_was_cut_out_is_the_edits() -> None:
    """A line that lost a word is new; the edit was aimed at that word."""
    authors = (Author("other", "", "- New."), Author("cut", "very ", ""))
    after = "- a good line\n- New.\n"
    origins = blame_lines("- a very good line\n", [Change(after, authors)])
    assert origins == ["cut", "other"]


def test_line_ends_change_nothing() -> None:
    """A last line that gains its end is the same line; so is one with CR LF."""
    assert blame_lines("a\nb", [changed("a\r\nb\r\nnew\r\n", "new")]) == [None, None, "k0"]


def test_a_change_without_edits_is_an_error() -> None:
    """Nobody is made the author of a line by guessing."""
    with pytest.raises(ValueError, match="without an edit"):
        blame_lines("a", [Change("b", ())])
    assert blame_lines("a\nb", [Change("a", ())]) == [None]
