"""The level, measured: null candidates through the real order, ladder and decision.

A null candidate has the same true accuracies as the skill that it would replace. Its accept rate
must not exceed alpha (study, T1); where the order can see the snapshot it does, by far.
Population of the study: p ~ 0.6 Beta(18, 2) + 0.2 Beta(4, 16) + 0.2 Beta(10, 10).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import pytest

from actors.gate.decide import Answers, LadderUnit, Rules, Standing, decide
from actors.gate.ladder import blind_order, build_ladder
from actors.gate.looks import block_ends
from protocol.baseline import Draws
from protocol.dataset import Question, Unit

Order = Callable[[Sequence[Unit], Sequence[Draws], random.Random], Sequence[Unit]]
SHAPES = ((0.6, 18, 2), (0.2, 4, 16), (0.2, 10, 10))


def accuracy(draw: random.Random) -> float:
    """One question's true accuracy."""
    [(_, a, b)] = draw.choices(SHAPES, [share for share, _, _ in SHAPES])
    return draw.betavariate(a, b)


def make_units(n_units: int, n_questions: int) -> tuple[Unit, ...]:
    """Units of a class, the same number of questions in each."""
    return tuple(
        Unit(
            unit_id=f"u{u}",
            video_id=f"v{u}",
            task_type="Counting Problem",
            questions=tuple(
                Question(
                    question_id=f"v{u}-{q}",
                    video_id=f"v{u}",
                    task_type="Counting Problem",
                    question="How many?",
                    options=("1", "2", "3", "4"),
                    answer="A",
                )
                for q in range(n_questions)
            ),
        )
        for u in range(n_units)
    )


def blind(units: Sequence[Unit], snapshot: Sequence[Draws], draw: random.Random) -> Sequence[Unit]:
    """The product's order; the EMA is noise of earlier epochs."""
    ema = {(u.task_type, u.video_id): draw.random() for u in units if draw.random() < 0.7}
    return blind_order(units, draw.randrange(10**9), 1, ema)


def wrong_first(
    units: Sequence[Unit], snapshot: Sequence[Draws], draw: random.Random
) -> Sequence[Unit]:
    """An order that has read the snapshot: the units with the worst draws come first."""
    right = {entry.unit_id: sum(entry.right) for entry in snapshot}
    return sorted(units, key=lambda unit: (right[unit.unit_id], draw.random()))


def run(
    units: Sequence[Unit],
    truth: dict[str, float],
    k: int,
    rules: Rules,
    order: Order,
    draw: random.Random,
) -> Standing:
    """One test of one null candidate."""
    snapshot = [
        Draws(
            unit_id=unit.unit_id,
            question_id=q.question_id,
            right=tuple(draw.random() < truth[q.question_id] for _ in range(k)),
        )
        for unit in units
        for q in unit.questions
    ]
    ordered = order(units, snapshot, draw)
    ladder: tuple[LadderUnit, ...] = build_ladder(ordered, snapshot, {})
    blocks: list[list[Answers]] = []
    ends = (0, *block_ends(len(ladder)))
    standing = decide(ladder, blocks, rules)
    while standing is None:
        index = len(blocks)
        blocks.append(
            [
                tuple(draw.random() < truth[q.question_id] for q in unit.questions)
                for unit in ordered[ends[index] : ends[index + 1]]
            ]
        )
        standing = decide(ladder, blocks, rules)
    return standing


def accept_rate(
    n_units: int,
    alpha: float,
    order: Order,
    *,
    k: int = 1,
    n_questions: int = 1,
    n_classes: int = 2000,
    futility_power: float = 0.0,
) -> float:
    """Share of classes whose null candidate is accepted.

    futility_power 0: the rule can only lower the rate, so that without it the rate is an upper
    bound; the same for the harm verdict.
    """
    rules = Rules(
        alpha=alpha,
        max_missing_share=0.05,
        futility_power=futility_power,
        harm_e=10.0 if futility_power else math.inf,
    )
    draw = random.Random(f"{n_units}|{alpha}|{k}|{n_questions}")
    units = make_units(n_units, n_questions)
    accepted = 0
    for _ in range(n_classes):
        truth = {q.question_id: accuracy(draw) for unit in units for q in unit.questions}
        accepted += run(units, truth, k, rules, order, draw).verdict == "accept"
    return accepted / n_classes


@pytest.mark.parametrize(
    ("n_units", "alpha", "k", "n_questions"),
    [
        pytest.param(16, 0.1, 1, 1, id="16 at .1"),
        pytest.param(16, 0.2, 1, 1, id="16 at .2"),
        pytest.param(16, 0.2, 3, 1, id="16 at .2, three draws"),
        pytest.param(16, 0.2, 3, 2, id="16 at .2, three draws, two questions"),
        pytest.param(30, 0.1, 1, 1, id="30 at .1"),
        pytest.param(30, 0.2, 1, 2, id="30 at .2, two questions"),
    ],
)
def test_a_null_candidate_passes_at_most_alpha(
    n_units: int, alpha: float, k: int, n_questions: int
) -> None:
    """P1-1a: one fixed snapshot and a blind order keep the level, without the futility stops."""
    n_classes = 600 if n_questions == 1 else 300
    rate = accept_rate(n_units, alpha, blind, k=k, n_questions=n_questions, n_classes=n_classes)
    print(f"null accept rate {n_units=} {alpha=} {k=} {n_questions=}: {rate:.4f}")
    assert rate <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / n_classes)


@pytest.mark.parametrize(("n_units", "study"), [(16, 0.027), (30, 0.045)])
def test_the_rate_is_the_studys(n_units: int, study: float) -> None:
    """With all stops the rate is that of the study (section 2.2, B, alpha .1)."""
    rate = accept_rate(n_units, 0.1, blind, futility_power=0.1, n_classes=600)
    print(f"null accept rate with stops, {n_units=}: {rate:.4f}")
    assert abs(rate - study) < 4 * math.sqrt(study * (1 - study) / 600)


def test_an_order_that_sees_the_snapshot_breaks_the_level() -> None:
    """Wrong units first: regression to the mean alone then looks like a gain."""
    rate = accept_rate(60, 0.1, wrong_first, n_classes=400)
    print(f"null accept rate, wrong first, 60 at .1: {rate:.3f}")
    assert rate > 0.4
