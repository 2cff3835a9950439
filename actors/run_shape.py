"""The sizes of a run, as the estimate takes them: from its plan, whoever made that. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from actors.estimate import ClassShape, RunShape
from actors.gate.levels import draws_of, stages_of
from actors.gate.looks import block_ends
from protocol.dataset import ClassWork
from protocol.settings import Config

__all__ = ["run_shape"]


def run_shape(
    config: Config,
    works: Sequence[ClassWork],
    *,
    val: int,
    test: int,
    wrong: float,
    serves: bool,
    n_prompts: int,
    fresh: bool = True,
    done: int = 0,
) -> RunShape:
    """What is left of a run after ``done`` epochs.

    val, test: questions that packages are compared on. wrong: share of diag's answers. serves:
    the seed's answers are this agent's own. n_prompts: documents that the slow update edits.
    """
    trainer = config.trainer
    design = sum(len(batch) for work in works for batch in work.batches)
    return RunShape(
        epochs=max(0, trainer.epochs - done),
        fresh=fresh,
        classes=tuple(_class(config, work) for work in works),
        val=val,
        test=test if trainer.run_holdout_eval else 0,
        test_seed=trainer.run_holdout_eval and not serves,
        seed_draw=serves and config.gate.seed_draw,
        stages=stages_of(config.gate),
        slow=min(trainer.slow_questions, design) if trainer.slow_update else 0,
        wrong=wrong,
        prompts=n_prompts,
    )


def _class(config: Config, work: ClassWork) -> ClassShape:
    batches = tuple(map(len, work.batches[: config.trainer.max_batches]))
    n_units = len(work.ladder)
    return ClassShape(
        task_type=work.task_type,
        batches=batches,
        ladder=sum(len(unit.questions) for unit in work.ladder),
        blocks=len(block_ends(n_units)),
        draws=draws_of(config.gate, n_units),
        minibatches=-(-max(batches, default=0) // config.evolver.minibatch),
    )
