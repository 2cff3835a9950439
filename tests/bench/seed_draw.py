"""What it costs the level that the seed's answers are v1's first draw.

They chose the pools: ``split_pools`` keeps skill defects in diag and gives val its wrong answers.
Here the product's own split is made from a seed's answers in worlds of the null study, and a null
candidate is tested on each class's gate fold, with the seed's answers as the first draw
(``gate.seed_draw: true``) and with fresh ones. Stops that only reject are off.

    python -m tests.bench.seed_draw [--worlds 100] [--classes 6]

prints the accepted share by level and draws. With few classes the ladders are long.
"""

from __future__ import annotations

import argparse
import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence

from actors.dataset.folds import fold_units
from actors.dataset.split import BaselineOutcome, split_pools
from actors.dataset.units import make_units
from actors.gate.decide import Answers, Rules, decide
from actors.gate.ladder import blind_order, build_ladder
from actors.gate.levels import alpha_of, draws_of
from actors.gate.looks import block_ends
from protocol.baseline import Draws
from protocol.dataset import Question, Unit
from protocol.diagnoser import Cause
from protocol.seed import SplitParameters
from tests.bench.null_classes import accuracy, settings_of

N_VIDEOS, PER_VIDEO, TRAINABLE = 300, 3, 8
CAUSES: tuple[Cause, ...] = ("defect", "defect", "lapse")


def world(
    draw: random.Random, n_classes: int, seed: int
) -> tuple[list[Unit], dict[str, float], dict[str, bool]]:
    """Diag's units after the split, true accuracies, and the seed's answers, by question id."""
    questions = [
        Question(
            question_id=f"v{video}-{i}",
            video_id=f"v{video}",
            task_type=f"class {draw.randrange(n_classes)}",
            question="?",
            options=("1", "2"),
            answer="A",
        )
        for video in range(N_VIDEOS)
        for i in range(PER_VIDEO)
    ]
    truth = {question.question_id: accuracy(draw) for question in questions}
    seeded = {question_id: draw.random() < p for question_id, p in truth.items()}
    outcomes = [
        BaselineOutcome(question_id=name, right=right, cause=None if right else draw.choice(CAUSES))
        for name, right in seeded.items()
    ]
    parameters = SplitParameters(
        seed=seed, n_trainval=100, n_test=200, val_ratio=0.4, val_wrong_min=20
    )
    pools, _ = split_pools(
        questions, outcomes, parameters, eval_min_per_class=2, trainable_min_units=TRAINABLE
    )
    diag = set(pools.diag)
    return list(make_units(q for q in questions if q.question_id in diag)), truth, seeded


def accepted(
    draw: random.Random,
    ladder: Sequence[Unit],
    truth: Mapping[str, float],
    first: Mapping[str, bool],
    k: int,
) -> bool:
    """Whether a null candidate is. first: the first draw where it is not drawn afresh."""
    snapshot = []
    for unit in ladder:
        for question in unit.questions:
            draws = [draw.random() < truth[question.question_id] for _ in range(k)]
            draws[0] = first.get(question.question_id, draws[0])
            entry = Draws(
                unit_id=unit.unit_id, question_id=question.question_id, right=tuple(draws)
            )
            snapshot.append(entry)
    ordered = blind_order(ladder, draw.randrange(2**32), 1, {})
    alpha = alpha_of(settings_of("balanced", 1), len(ladder))
    rules = Rules(alpha=alpha, max_missing_share=0.05, futility_power=0.0, harm_e=math.inf)
    blocks: list[list[Answers]] = []
    ends = (0, *block_ends(len(ladder)))
    joined = build_ladder(ordered, snapshot, {})
    standing = decide(joined, blocks, rules)
    while standing is None:
        units = ordered[ends[len(blocks)] : ends[len(blocks) + 1]]
        blocks.append(
            [tuple(draw.random() < truth[q.question_id] for q in unit.questions) for unit in units]
        )
        standing = decide(joined, blocks, rules)
    return standing.verdict == "accept"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--classes", type=int, default=6)
    arguments = parser.parse_args()
    draw = random.Random(3)
    found: defaultdict[tuple[float, int, str], list[bool]] = defaultdict(list)
    sizes: list[int] = []
    for seed in range(arguments.worlds):
        units, truth, seeded = world(draw, arguments.classes, seed)
        for task_type in sorted({unit.task_type for unit in units}):
            folds = fold_units(
                [unit for unit in units if unit.task_type == task_type],
                seed=seed,
                epoch=1,
                design_share=0.5,
                trainable_min_units=TRAINABLE,
            )
            if folds.in_sample:
                continue
            n_units = len(folds.ladder)
            sizes.append(n_units)
            for k in (1, 3):
                alpha = alpha_of(settings_of("balanced", k), n_units)
                assert draws_of(settings_of("balanced", k), n_units) == k
                for name, first in (("seed", seeded), ("fresh", {})):
                    verdict = accepted(draw, folds.ladder, truth, first, k)
                    found[alpha, k, name].append(verdict)
    print(f"{len(sizes)} ladders of {min(sizes)} to {max(sizes)} units")
    for (alpha, k, name), verdicts in sorted(found.items()):
        rate = sum(verdicts) / len(verdicts)
        error = math.sqrt(rate * (1 - rate) / len(verdicts))
        print(f"alpha {alpha}  k={k}  {name:<5}  {rate:.3f} +- {error:.3f}  ({len(verdicts)})")


if __name__ == "__main__":
    main()
