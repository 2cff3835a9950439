"""The parts of the report's page: markup, verdict, pictures, transcripts. Pure."""

from __future__ import annotations

import re
import zlib
from base64 import b64decode
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.commands.html.charts import Scale, e_path, ticks_of
from actors.commands.html.gather import compare
from actors.commands.html.gather_run import state_of
from actors.commands.html.markup import el, joined, legible
from actors.commands.html.passes import pass_of, passes_of
from actors.commands.html.pictures import waterfall
from actors.commands.html.section_result import verdict_of
from actors.commands.html.story import (
    Comparison,
    Cost,
    Diagnosed,
    Path,
    Point,
    Questioned,
    Run,
    Story,
    Trouble,
)
from actors.commands.html.transcripts import embed
from actors.commands.html.words import exact, points
from actors.config import load_config
from protocol.documents import Package
from protocol.gate import Look
from protocol.rows import EpochRow, OutcomeRow, TraceRow
from tests.commands.house import row
from tests.commands.pages import parse

# -- markup -----------------------------------------------------------------------------


HARD = st.text(st.sampled_from("<>&;\"'/=!-#ab \n\r\x00\x1b\ud800")) | st.text()


@given(HARD, HARD)
def test_whatever_is_put_in_is_read_back(text: str, value: str) -> None:
    """As a text and as an attribute, for every text; no element comes of it."""
    page = parse(el("p", text, title=value))
    assert [name for name, _ in page.elements] == ["p"]
    assert page.words.replace("\r", "\n") == legible(text).replace("\r", "\n")
    assert page.having("title") == [legible(value)]


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("script", {}),
        ("STYLE", {}),
        ("iframe", {}),
        ("p onclick=x", {}),
        ("p", {"onclick": "x"}),
        ("p", {"style": "color: red"}),
        ("img", {"src": "x"}),
        ("a", {"href": "javascript:x"}),
        ("a", {"href": "https://example.org"}),
        ("p", {"a b": "x"}),
    ],
)
def test_what_could_run_is_not_made(name: str, attributes: dict[str, str]) -> None:
    """A programmer's mistake is an error, not a hole."""
    with pytest.raises(ValueError, match=r"is made of data|leads to a place"):
        el(name, **attributes)


def test_markup_is_put_in_as_it_is() -> None:
    """Only what ``el`` has made; a string that looks like it is text."""
    assert joined(el("b", "x"), "<b>x</b>", 1, None, [el("br")]) == (
        "<b>x</b>&lt;b&gt;x&lt;/b&gt;1<br>"
    )


# -- verdict ----------------------------------------------------------------------------

SEED, BEST = Package(skills="v1", prompts="v1"), Package(skills="v2", prompts="v1")


def story(*comparisons: Comparison, **changes: object) -> Story:
    """A run that ended, with these comparisons."""
    run = Run(
        run_id="r",
        workspace="w",
        state="ended",
        why="All 2 epochs are done.",
        seed_name="s",
        seed=SEED,
        current=BEST,
        best=BEST,
        best_mixed=BEST,
        epoch=2,
        planned_epochs=2,
        models=(),
        facts=(),
        oracle=False,
        began="",
        ended="",
    )
    return Story(
        run=msgspec.structs.replace(run, **changes),
        points=(),
        epochs=(),
        comparisons=comparisons,
        candidates=(),
        slow=(),
        documents=(),
        diagnosed=(),
        cost=Cost(roles=(), embeds=None),
        trouble=Trouble(answered=0, missing={}, agent={}, edits={}),
        questions=(),
        findings={},
        gaps=(),
    )


def compared(wins: int, losses: int, both: int, pool: str = "test") -> Comparison:
    """A comparison with these pairs, all of one class."""
    ids = [f"q{number}" for number in range(wins + losses + both)]
    was = {one: number >= wins for number, one in enumerate(ids)}
    is_ = {one: not wins <= number < wins + losses for number, one in enumerate(ids)}

    def point(right: int) -> Point:
        return Point(
            epoch=1,
            pool=pool,
            kind="final",
            package="p",
            planned=len(ids),
            right=right,
            missing=0,
            low=0.0,
            high=1.0,
        )

    classes = dict.fromkeys(ids, "C")
    return compare(point(losses + both), point(wins + both), was, is_, classes)


def test_a_gain_on_test_is_claimed_with_interval_and_p() -> None:
    """In one sentence, and what it rests on in the next."""
    verdict = verdict_of(story(compared(20, 2, 18)))
    assert (verdict.tone, verdict.lead) == (
        "good",
        "The trained documents gain 45.0 points on test.",
    )
    assert "On 40 questions that training never saw" in verdict.body
    assert "95 % interval +2" in verdict.body
    assert "exact one-sided p\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}6e−5" in verdict.body


@pytest.mark.parametrize(
    ("told", "lead"),
    [
        (story(compared(2, 20, 18)), "lose 45.0 points on test"),
        (story(compared(5, 4, 11)), "not shown to be better"),
        (story(compared(0, 0, 0)), "No question of test was answered on both sides"),
        (story(compared(9, 0, 9, "val")), "No gain is claimed: test was not evaluated"),
        (story(), "there is nothing to compare with"),
        (story(best=SEED), "Nothing beat the seed’s documents on val"),
        (story(best=SEED, state="running"), "Under way: no epoch is whole yet"),
        (story(state="empty", why="This run has not begun."), "has not begun"),
    ],
)
def test_no_gain_is_claimed_where_none_is_shown(told: Story, lead: str) -> None:
    """Whatever the run has come to, the sentence is true of it."""
    verdict = verdict_of(told)
    assert lead in verdict.lead
    assert verdict.tone != "good"


def test_a_comparison_by_class() -> None:
    """Missing answers are planned, but make no pair."""
    whole = compared(3, 1, 2)
    assert (whole.classes[0].before, whole.classes[0].after) == (3, 5)
    assert (whole.won, whole.lost) == (("q0", "q1", "q2"), ("q3",))
    none = compare(whole.before, whole.after, {"a": True}, {}, {"a": "C", "b": "D"})
    assert [one.paired.pairs for one in none.classes] == [0, 0]


@pytest.mark.parametrize(
    ("epochs", "waited", "begun", "process", "state"),
    [
        (0, 0, False, None, "empty"),
        (0, 0, True, None, "stopped"),
        (1, 0, True, None, "stopped"),
        (1, 9, True, None, "ended"),
        (3, 0, True, None, "ended"),
        (1, 0, True, 77, "running"),
        (0, 0, False, 0, "running"),
    ],
)
def test_where_a_run_stands(
    epochs: int, waited: int, begun: bool, process: int | None, state: str
) -> None:
    """Of three planned epochs, with a patience of two."""
    config = load_config(None, ["trainer.epochs=3", "trainer.early_stop_patience=2"])
    rows = [
        row(EpochRow, epoch=number, epochs_since_best_improved=waited)
        for number in range(1, epochs + 1)
    ]
    assert state_of(rows, config, begun=begun, process=process)[0] == state


@pytest.mark.parametrize(
    ("epochs", "planned", "process", "words"),
    [
        (1, 1, None, "Its one epoch is done."),
        (0, 1, None, "Stopped after 0 of 1 whole epoch; "),
        (0, 2, None, "Stopped after 0 of 2 whole epochs; "),
        (1, 2, 7, "Under way: 1 of 2 epochs is whole."),
        (1, 9, None, "Ended after epoch 1: 1 epoch without a better package."),
    ],
)
def test_one_is_one_epoch(epochs: int, planned: int, process: int | None, words: str) -> None:
    config = load_config(
        None,
        [f"trainer.epochs={planned}", f"trainer.early_stop_patience={1 if planned > 2 else 9}"],
    )
    rows = [row(EpochRow, epoch=n + 1, epochs_since_best_improved=1) for n in range(epochs)]
    assert state_of(rows, config, begun=True, process=process)[1].startswith(words)


# -- pictures and words -----------------------------------------------------------------


@given(st.floats(0, 1), st.floats(0, 1))
def test_ticks_hold_what_is_drawn(one: float, other: float) -> None:
    """At least two, ascending, around the values, inside [0, 1]."""
    low, high = sorted((one, other))
    ticks = ticks_of(low, high)
    assert len(ticks) >= 2
    assert ticks == sorted(set(ticks))
    assert ticks[0] <= low + 1e-6
    assert ticks[-1] >= high - 1e-6
    assert 0 <= ticks[0] < ticks[-1] <= 1


def test_a_scale_of_one_value() -> None:
    """Does not divide by nothing."""
    assert Scale(1, 1, 0, 10)(1) == 0


@pytest.mark.parametrize("values", [(), (1.5,), (0.0,), (1e300,), (1.5, 0.75, 12.0)])
def test_a_path_of_any_values(values: Sequence[float]) -> None:
    """A test without a look, an e-value of zero, a huge one: coordinates stay numbers."""
    looks = tuple(
        Look(units=4 * n, wins=1, losses=0, ties=3, missing=1, e=e)
        for n, e in enumerate(values, start=1)
    )
    drawn = e_path(
        Path(
            name="",
            alpha=0.1,
            n_units=20,
            looks=looks,
            accepting=(20,),
            verdict="accept",
            reason="core",
        )
    )
    assert "nan" not in drawn
    assert "inf" not in drawn
    assert "accept from" not in drawn  # the only look is the last, which takes no e-value


def test_a_path_says_where_its_level_accepts() -> None:
    """At a look before the last, where there is one."""
    look = Look(units=8, wins=6, losses=0, ties=2, missing=0, e=11.4)
    path = Path(
        name="",
        alpha=0.1,
        n_units=30,
        looks=(look,),
        accepting=(12, 30),
        verdict="accept",
        reason="core",
    )
    drawn = e_path(path)
    assert "early accept from 10" in drawn
    assert "from 10 on an early tick accepts, the last tick decides by an exact test" in drawn
    assert "is accepted" not in drawn


def test_the_waterfall_keeps_every_wrong_answer() -> None:
    """A type that it does not know falls last, and none is lost."""
    found = (
        Diagnosed(error_type="no_search", subtype="", cause="lapse", number=2),
        Diagnosed(error_type="reasoning_failure", subtype="logic_error", cause="defect", number=3),
        Diagnosed(error_type="new_kind", subtype="", cause="silent", number=1),
    )
    drawn = waterfall(found)
    assert "new_kind" in drawn
    numbers = [int(one) for one in re.findall(r'class="number">(\d+)<', drawn)]
    assert numbers == [6, 2, 0, 0, 3, 3, 0, 1]  # the whole, five checks, a subtype, the new kind


def test_numbers_are_said_with_care() -> None:
    """A small p is never zero; a minus is a minus; no gain has no sign to think about."""
    assert (exact(0.0001730005), exact(3e-9), exact(1.0)) == ("0.00017", "3e−9", "1")
    assert (points(0.208), points(-0.125), points(-0.0)) == ("+20.8", "−12.5", "+0.0")


# -- passes and transcripts -------------------------------------------------------------


def test_passes_stand_in_the_order_of_the_run() -> None:
    """The seed's answers first, an epoch's step before its gate, its slow update, its passes."""
    keys = [
        "e2/c/s1/gate/b10",
        "e1/test/final",
        "e1/slow/after",
        "seed",
        "e1/c/s1/rollout",
        "something/else",
        "e0/val/seed",
        "e1/c/s1/gate/b2",
        "baseline/c/abc/v1/d0",
        "e1/val/fast",
        "e1/slow/before",
        "e1/c/s1/gate/b10",
    ]
    assert [one.key for one in passes_of(keys)] == [
        "seed",
        "baseline/c/abc/v1/d0",
        "e0/val/seed",
        "e1/c/s1/rollout",
        "e1/c/s1/gate/b2",
        "e1/c/s1/gate/b10",
        "e1/slow/before",
        "e1/slow/after",
        "e1/val/fast",
        "e1/test/final",
        "e2/c/s1/gate/b10",
        "something/else",
    ]
    assert pass_of("e1/c/s1/gate/b2").label == "Epoch 1, step 1: the gate's candidate, block 3"


def _outcome(question: str, run_key: str, outcome: str) -> OutcomeRow:
    return row(OutcomeRow, run_key=run_key, question_id=question, outcome=outcome)


def _asked(question: str, *outcomes: OutcomeRow) -> Questioned:
    return Questioned(
        question_id=question,
        video_id=question[:1],
        task_type="C",
        pool="test",
        known=True,
        text="?",
        options=(),
        gold="A",
        seed=None,
        outcomes=outcomes,
    )


def test_transcripts_are_packed_and_bounded() -> None:
    """What the verdict rests on comes first; what finds no room is counted, never silent."""
    first, gate = "e1/test/final", "e1/c/s1/gate/b0"
    asked = [
        _asked("a1", _outcome("a1", first, "right"), _outcome("a1", gate, "right")),
        _asked("b1", _outcome("b1", first, "wrong"), _outcome("b1", "e1/x/s1/rollout", "right")),
        _asked("c1", _outcome("c1", first, "missing")),
    ]

    def read(run_key: str, question_id: str) -> Sequence[TraceRow]:
        if question_id == "c1":
            return ()
        return [
            row(
                TraceRow,
                run_key=run_key,
                question_id=question_id,
                step=number,
                observation="same\nlines\n" + question_id,
                flags="[]",
                dropped=0,
            )
            for number in (1, 2)
        ]

    passes = passes_of({one.run_key for each in asked for one in each.outcomes})
    numbers = {one.key: number for number, one in enumerate(passes)}
    whole = embed(asked, passes, read, {first})
    assert (whole.held, whole.left_out) == (4, 0)
    chunk = msgspec.json.decode(zlib.decompress(b64decode(whole.chunks[0])))
    assert list(chunk["steps"]) == [f"1.{numbers[first]}"]  # the wrong answer's video
    assert chunk["lines"].count("same") == 1
    observation = chunk["steps"][f"1.{numbers[first]}"][0][3]
    assert "\n".join(chunk["lines"][at] for at in observation) == "same\nlines\nb1"
    less = embed(asked, passes, read, {first}, most=len(whole.chunks[0]) + 1)
    assert (less.held, less.left_out) == (1, 3)
    assert set(less.of) == {(1, numbers[first])}
    assert embed(asked, passes, read, most=0).left_out == 4
