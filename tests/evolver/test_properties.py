"""No protected byte ever changes, and every patch can be taken back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.evolver.document import MARKERS, holds_marker, validate
from actors.evolver.patch import Limits, apply_edits, undo
from actors.evolver.regions import write_notes
from protocol.evolver import Edit, Op
from tests.fuzz.hostile import Hostile
from tests.fuzz.patch_engine import check, search

LITERALS = [marker for pair in MARKERS.values() for marker in pair]
lines = st.one_of(
    st.sampled_from(["## Steps", "- look", "- look twice", "```", "- cafe\u0301", "---", ""]),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12),
)
bodies = st.lists(st.tuples(lines, st.sampled_from(["\n", "\r\n"])), max_size=8).map(
    lambda parts: "".join(line + end for line, end in parts)
)
anywhere = st.lists(st.one_of(lines, st.sampled_from([*LITERALS, "\n", "\r\n"])), max_size=12).map(
    "".join
)
fronts = st.sampled_from(["", "---\nname: a\n---"])
tails = st.sampled_from(
    [
        "",
        f"{LITERALS[0]}\n- note\n{LITERALS[1]}\n",
        f"{LITERALS[2]}\nlook\n{LITERALS[3]}",
        f"{LITERALS[0]}\n{LITERALS[1]}\n\n{LITERALS[2]}{LITERALS[3]}\n",
    ]
)
ops: st.SearchStrategy[Op] = st.sampled_from(["append", "insert_after", "replace", "delete"])
payloads = st.lists(
    st.one_of(lines, st.sampled_from([*LITERALS, "APPENDIX_", "END", "\n", "<!-- "])), max_size=3
).map("".join)


@st.composite
def patches(draw: st.DrawFn, text: str) -> list[Edit]:
    """Edits whose targets are cut out of the text, or made up."""
    made: list[Edit] = []
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        cut = text[start : start + draw(st.integers(0, 30))]
        target = draw(st.one_of(st.just(cut), payloads))
        made.append(
            Edit(op=draw(ops), target=target, content=draw(payloads), support=(), reason="")
        )
    return made


@settings(max_examples=200, deadline=None)
@given(st.data(), fronts, bodies, tails)
def test_p1_6_no_protected_byte_changes(
    data: st.DataObject, front: str, body: str, tail: str
) -> None:
    """P1-6: front matter and regions stand byte for byte, whatever is proposed."""
    body = "\n" + body if front else body
    if not front and body.startswith(("---", "\ufeff")):
        body = "x" + body
    text = front + body + tail
    sound = text.count("\r") == text.count("\r\n") and not holds_marker(body)
    edits = data.draw(patches(text))
    check(Hostile(front, body, tail, (), sound), edits, Limits(9, 10_000, 50.0))


@settings(max_examples=200, deadline=None)
@given(st.data(), anywhere)
def test_p1_6_markers_in_odd_places(data: st.DataObject, text: str) -> None:
    """P1-6: a result is sound, or it is the damaged input untouched; undo restores both."""
    edits = data.draw(patches(text))
    patched = apply_edits(text, edits, Limits(9, 10_000, 50.0), screen=lambda _: None)
    assert undo(patched.text, patched.inverse) == text
    assert patched.text == text or not (validate(text) or validate(patched.text))


@settings(max_examples=100, deadline=None)
@given(fronts, bodies, tails, st.lists(payloads, max_size=4))
def test_p1_6_the_appendix_writer_keeps_everything_else(
    front: str, body: str, tail: str, notes: list[str]
) -> None:
    """P1-6 holds for the appendix writer too."""
    text = front + ("\n" + body if front else body) + tail
    if validate(text):
        return
    noted = write_notes(text, notes, 3, lambda _: None)
    assert not validate(noted.text)
    assert len(noted.added) + len(noted.refused) == len(notes)
    for note in noted.added:
        assert f"- {note}" in noted.text
    again = write_notes(noted.text, notes, 3, lambda _: None)
    assert again.text == noted.text
    assert (noted.text == text) == (not noted.added)
    if LITERALS[0] in text:
        assert noted.text.startswith(text[: text.index(LITERALS[1])].rstrip())
        assert noted.text.endswith(text[text.index(LITERALS[1]) :])
    elif noted.added:
        head = text[: text.index(LITERALS[2])] if LITERALS[2] in text else text
        assert noted.text.startswith(head)
        assert noted.text.endswith(text[len(head) :])


@pytest.mark.parametrize("seed", [1, 2])
def test_p1_6_a_stretch_of_the_fuzz_search(seed: int) -> None:
    """P1-6: what ``python -m tests.fuzz.patch_engine`` does, a few thousand edits of it."""
    counts = search(2500, seed)
    wanted = {"applied", "no_match", "ambiguous", "protected", "marker", "frozen", "empty", "noop"}
    assert wanted <= counts.keys()
    assert {"too_long", "over_budget"} <= counts.keys()
