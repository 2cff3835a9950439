"""Coins, tally, drop rule, states, sentinels and the report of the factorial gate."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.gate.factorial.coins import Coin, PairCoins, draw_coins, fair_coin
from actors.gate.factorial.drop import drop_harmful
from actors.gate.factorial.keyed import keyed_integer
from actors.gate.factorial.report import edit_results, effect_interval
from actors.gate.factorial.schedule import Pair
from actors.gate.factorial.sentinel import check_sentinels, two_sided
from actors.gate.factorial.states import (
    FactorialEdit,
    State,
    conclude,
    counted,
    live_edits,
    needs_pairs,
)
from actors.gate.factorial.stepup import evidence_of
from actors.gate.factorial.tally import Outcome, outcome, tally

DROP_HARM = Fraction(3, 10)


def pair_of(index: int, task_type: str = "c", phase: int = 3) -> Pair:
    return Pair(task_type=task_type, phase=phase, index=index, unit_id="u")


def edit(edit_id: str, **more: object) -> FactorialEdit:
    fields: dict[str, object] = {"edit_id": edit_id, "task_type": "c", "born": 1}
    fields |= more
    fields.setdefault("seen", sum(int(str(fields.get(key, 0))) for key in ("wins", "losses")))
    fields.setdefault("pairs", fields["seen"])
    return msgspec.convert(fields, FactorialEdit)


@st.composite
def classes(draw: st.DrawFn) -> tuple[FactorialEdit, ...]:
    """Edits of a class, born in several epochs, some dropped, some in groups."""
    return tuple(
        edit(
            f"e{i}",
            born=draw(st.integers(1, 3)),
            group=draw(st.sampled_from([None, None, "g", "h"])),
            state=draw(st.sampled_from(["live", "live", "dropped"])),
        )
        for i in range(draw(st.integers(0, 8)))
    )


@settings(deadline=None)
@given(classes(), st.integers(0, 99), st.integers(1, 3))
def test_coins_do_not_depend_on_who_else_is_there(
    edits: tuple[FactorialEdit, ...], seed: int, phase: int
) -> None:
    """An edit has the same coin with and without the others, dropped or live, asked when ever."""
    pair = pair_of(17, phase=phase)
    for coin in draw_coins(seed, pair, edits).coins:
        own = next(one for one in edits if one.edit_id == coin.edit_id)
        alone = draw_coins(seed, pair, [msgspec.structs.replace(own, state="live")])
        assert alone.coins == (Coin(coin.edit_id, coin.sign),)
        assert coin.sign == fair_coin(seed, pair, coin.edit_id)


@settings(deadline=None)
@given(classes(), st.integers(0, 99), st.integers(1, 3))
def test_arms_are_opposite(edits: tuple[FactorialEdit, ...], seed: int, phase: int) -> None:
    """Every live edit that takes part is on in just one arm; a group has at most one on; every
    group with a live member has one that takes part; nobody is on before its birth."""
    drawn = draw_coins(seed, pair_of(5, phase=phase), edits)
    a, b = drawn.on("a"), drawn.on("b")
    on = [one for one in edits if one.edit_id in (*a, *b)]
    assert not set(a) & set(b)
    assert all(one.state == "live" and one.born <= phase for one in on)
    born = [one for one in edits if one.born <= phase and one.state == "live"]
    assert Counter(one.group for one in on) == Counter(
        [one.group for one in born if one.group is None]
    ) + Counter({one.group for one in born if one.group is not None})
    assert not {coin.edit_id for coin in drawn.coins if coin.virtual} & {*a, *b}


def test_coins_are_fair_and_independent() -> None:
    """Over 4,000 pairs: each edit's coin, two edits' product, neighbours' product, and who of a
    group takes part, all within five standard errors."""
    edits = [edit("x"), edit("y"), *(edit(name, group="g") for name in "pqr")]
    sums: Counter[str] = Counter()
    picked: Counter[str] = Counter()
    before = 1
    for index in range(1, 4001):
        drawn = draw_coins(3, pair_of(index), edits)
        x, y, member = drawn.coins
        sums.update(x=x.sign, y=y.sign, xy=x.sign * y.sign, xx=x.sign * before, g=member.sign)
        picked[member.edit_id] += 1
        sums[f"g/{member.edit_id}"] += member.sign
        before = x.sign
    assert all(abs(total) < 5 * 4000**0.5 for total in sums.values())
    assert all(abs(n - 4000 / 3) < 5 * (4000 * 2 / 9) ** 0.5 for n in picked.values())


def test_a_dropped_member_takes_part_as_often_as_a_live_one_would() -> None:
    """Beside two live ones in a third of the pairs, alone in all; the live ones do not notice."""
    live = [edit("p", group="g"), edit("q", group="g")]
    gone = edit("r", group="g", state="dropped")
    virtual = 0
    for index in range(1, 3001):
        drawn = draw_coins(3, pair_of(index), [*live, gone])
        real = tuple(coin for coin in drawn.coins if not coin.virtual)
        assert real == draw_coins(3, pair_of(index), live).coins
        virtual += len(drawn.coins) - 1
        assert len(draw_coins(3, pair_of(index), [gone]).coins) == 1
    assert abs(virtual - 1000) < 5 * (3000 * 2 / 9) ** 0.5


def test_seed_class_pair_and_edit_have_coins_of_their_own() -> None:
    """Whatever part of the key differs, the coins do; phases are told apart by the pair."""

    def coins(seed: int, task_type: str, edit_id: str, first: int) -> list[int]:
        return [fair_coin(seed, pair_of(first + i, task_type), edit_id) for i in range(64)]

    made = [
        coins(*key)
        for key in [
            (1, "c", "e", 1),
            (2, "c", "e", 1),
            (1, "d", "e", 1),
            (1, "c", "f", 1),
            (1, "c", "e", 65),
        ]
    ]
    assert len({tuple(row) for row in made}) == 5
    assert keyed_integer("a|b", "c") != keyed_integer("a", "b|c")
    assert keyed_integer("1") != keyed_integer(1)


def test_coins_stay_what_they_are() -> None:
    """A logged run is resumed by a later release: these coins are a promise."""
    drawn = draw_coins(7, pair_of(1), [edit(f"e{i}") for i in range(24)])
    assert "".join("+" if coin.sign > 0 else "-" for coin in drawn.coins) == PROMISED


PROMISED = "+++-------+++-++++-----+"


def test_coins_are_for_a_class_s_undecided_edits() -> None:
    """Another class's, two of one name and decided ones are errors."""
    with pytest.raises(ValueError, match="e is of d"):
        draw_coins(1, pair_of(1), [edit("e", task_type="d")])
    with pytest.raises(ValueError, match="same id"):
        draw_coins(1, pair_of(1), [edit("e"), edit("e")])
    with pytest.raises(ValueError, match="is decided"):
        draw_coins(1, pair_of(1), [edit("e", state="adopted")])


outcomes: st.SearchStrategy[Outcome] = st.sampled_from([-1, 0, 1, None])
runs = st.lists(outcomes, max_size=40)


def drawn_pairs(
    edits: tuple[FactorialEdit, ...], given_outcomes: list[Outcome]
) -> list[tuple[PairCoins, Outcome]]:
    return [(draw_coins(1, pair_of(i), edits), o) for i, o in enumerate(given_outcomes, start=1)]


@settings(deadline=None)
@given(classes(), runs, st.integers(0, 40))
def test_tally_is_a_function_of_the_log(
    edits: tuple[FactorialEdit, ...], found: list[Outcome], at: int
) -> None:
    """Any order, any cut into two: the same counts, so that a stopped run counts on."""
    pairs = drawn_pairs(edits, found)
    whole = tally(edits, pairs)
    assert tally(tally(edits, pairs[:at]), pairs[at:]) == whole
    assert tally(edits, pairs[::-1]) == whole


@settings(deadline=None)
@given(classes(), runs)
def test_swapped_arms_with_flipped_coins_are_the_same(
    edits: tuple[FactorialEdit, ...], found: list[Outcome]
) -> None:
    """Which arm is called a says nothing."""
    pairs = drawn_pairs(edits, found)

    def flipped(coin: Coin) -> Coin:
        return Coin(coin.edit_id, -1 if coin.sign > 0 else 1, coin.virtual)

    swapped: list[tuple[PairCoins, Outcome]] = [
        (
            PairCoins(coins.pair, tuple(map(flipped, coins.coins))),
            None if o is None else (0 if o == 0 else 1 if o < 0 else -1),
        )
        for coins, o in pairs
    ]
    assert tally(edits, swapped) == tally(edits, pairs)


@settings(deadline=None)
@given(classes(), runs)
def test_every_discordant_pair_is_seen_and_void_ones_are_not(
    edits: tuple[FactorialEdit, ...], found: list[Outcome]
) -> None:
    """Without groups, each edit sees all discordant pairs, dropped or not; only live ones score."""
    edits = tuple(msgspec.structs.replace(one, group=None) for one in edits)
    discordant = sum(o in (-1, 1) for o in found)
    for one in tally(edits, drawn_pairs(edits, found)):
        assert one.seen == discordant
        live = one.state == "live"
        assert one.discordant == (discordant if live else 0)
        assert one.pairs == (sum(o is not None for o in found) if live else 0)


def test_tally_refuses_what_does_not_fit() -> None:
    """A pair twice, an unknown edit, coins drawn before an edit was dropped."""
    edits = (edit("e"),)
    coins = draw_coins(1, pair_of(1), edits)
    with pytest.raises(ValueError, match="pair 1 is counted twice"):
        tally(edits, [(coins, 0), (coins, 1)])
    for others in ((edit("f"),), (edit("e", state="dropped"),)):
        with pytest.raises(ValueError, match="another state"):
            tally(others, [(coins, None)])


def test_outcome_of_a_unit() -> None:
    """The sign of the difference in right answers; one lost answer voids the pair."""
    assert get_args(get_args(Outcome)[0]) == (-1, 0, 1)
    assert outcome([True], [False]) == 1
    assert outcome([True, False, False], [False, True, True]) == -1
    assert outcome([True, False], [False, True]) == 0
    assert outcome([True, True], [False, None]) is None
    assert outcome([None], [True]) is None
    with pytest.raises(ValueError, match="arms of 1 and 2"):
        outcome([True], [True, True])
    with pytest.raises(ValueError, match="arms of 0"):
        outcome([], [])


@pytest.mark.parametrize(
    ("wins", "losses", "state"),
    [
        (0, 0, "live"),
        (0, 1, "live"),  # 1/2
        (0, 2, "dropped"),  # 1/4
        (1, 2, "live"),  # 1/2
        (1, 3, "live"),  # 5/16
        (2, 5, "dropped"),  # 29/128
        (9, 0, "live"),
    ],
)
def test_drop_rule(wins: int, losses: int, state: State) -> None:
    """L > 0 and P(Bin(W + L, 1/2) >= L) <= .3; a sentinel stays."""
    counts = {"wins": wins, "losses": losses}
    (ended,) = drop_harmful([edit("e", **counts)], DROP_HARM)
    assert ended.state == state
    (kept,) = drop_harmful([edit("s", sentinel=True, **counts)], DROP_HARM)
    assert kept.state == "live"


def test_the_drop_rule_holds_at_its_bound() -> None:
    """A quarter is what 0-2 comes to: at most, not below."""
    (ended,) = drop_harmful([edit("e", losses=2, seen=2, pairs=2)], Fraction(1, 4))
    assert ended.state == "dropped"


def test_states() -> None:
    """live -> adopted | rejected; dropped and sentinel stay what they are; M leaves out the
    sentinel."""
    edits = (
        edit("s", sentinel=True, wins=3),
        edit("a", wins=9),
        edit("b", losses=1),
        edit("d", state="dropped", losses=2, seen=5, pairs=9),
    )
    assert [one.edit_id for one in live_edits(edits)] == ["s", "a", "b"]
    assert [one.edit_id for one in counted(edits)] == ["a", "b", "d"]
    assert [(one.edit_id, one.discordant) for one in evidence_of(edits)] == [
        ("a", 9),
        ("b", 1),
        ("d", 5),
    ]
    ended = conclude(edits, ["a"])
    assert [one.state for one in ended] == ["live", "adopted", "rejected", "dropped"]
    for wrong in ("d", "s", "other"):
        with pytest.raises(ValueError, match=f"not live: {wrong}"):
            conclude(edits, [wrong])
    assert needs_pairs(edits)
    assert not needs_pairs((edits[0], edits[3]))


@pytest.mark.parametrize(
    "counts",
    [
        {"wins": -1},
        {"wins": 3, "seen": 2, "pairs": 9},
        {"wins": 3, "seen": 3, "pairs": 2},
        {"wins": 3, "seen": 4, "pairs": 9},
        {"sentinel": True, "state": "dropped"},
    ],
)
def test_counts_that_cannot_be(counts: dict[str, object]) -> None:
    """Said where they arise, with the edit's name."""
    with pytest.raises(msgspec.ValidationError, match="e1"):
        edit("e1", **counts)


def test_sentinels() -> None:
    """A fair coin passes, a class that is off fails by name, a sum that is off fails too."""
    fair = [edit(f"s{i}", sentinel=True, wins=20 + i % 3, losses=20) for i in range(12)]
    assert check_sentinels(fair).ok
    assert check_sentinels([]).ok
    off = check_sentinels([*fair, edit("bad", sentinel=True, wins=40, losses=8)])
    assert (off.ok, off.failing) == (False, ("bad",))
    leaning = [edit(f"s{i}", sentinel=True, wins=15, losses=7) for i in range(12)]
    total = check_sentinels([*leaning, edit("e", wins=1, losses=50)])
    assert (total.ok, total.failing, total.wins, total.losses) == (False, (), 180, 84)
    assert two_sided(0, 0) == two_sided(2, 2) == 1
    assert two_sided(0, 4) == two_sided(4, 0) == Fraction(1, 8)


def test_report() -> None:
    """Effect with its interval; an adopted edit is said to be selected."""
    edits = conclude(
        [
            edit("a", wins=20, losses=4, pairs=80),
            edit("b"),
            edit("d", wins=1, losses=4, seen=9, pairs=20, state="dropped"),
        ],
        ["a"],
    )
    a, b, d = edit_results(edits)
    assert (a.effect, a.selected, a.state) == (0.2, True, "adopted")
    assert 0.0 < a.low < 0.2 < a.high < 0.45
    assert (b.effect, b.low, b.high, b.p, b.selected) == (None, -1.0, 1.0, 1.0, False)
    assert (d.p, d.discordant, d.effect) == (1.0, 9, -0.15)


@settings(deadline=None)
@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 30))
def test_the_interval_holds_the_estimate(wins: int, losses: int, ties: int) -> None:
    """And turns over with won and lost exchanged."""
    pairs = wins + losses + ties
    if pairs == 0:
        return
    low, high = effect_interval(wins, losses, pairs)
    assert low - 1e-9 <= (wins - losses) / pairs <= high + 1e-9
    assert effect_interval(losses, wins, pairs) == pytest.approx((-high, -low))
