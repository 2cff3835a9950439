"""A run in one sentence, for the first line that is read of it. Pure; claims nothing of its own.

Only test may carry a claim, and only at ``LEVEL``; what val says is named as flattered, since val
chose the package.
"""

from __future__ import annotations

import msgspec

from actors.tables import paired_words
from actors.trainer.score import McNemar

__all__ = ["LEVEL", "Compared", "Learnt", "verdict"]

LEVEL = 0.05
"""Of the one claim that a run makes: the best package against the seed on test."""


class Compared(msgspec.Struct, frozen=True):
    """The seed and the best package on a pool. right, of planned questions."""

    planned: int
    before: int
    after: int
    paired: McNemar

    @property
    def words(self) -> str:
        """``75.0 % of the ... questions, the seed 50.0 %: +25.0 points ...`` behind the pool."""
        of_them = ""
        if self.paired.pairs < self.planned:
            of_them = f" (on the {self.paired.pairs} that both have answered)"
        return f"the seed {_share(self.before, self.planned)}: {paired_words(self.paired)}{of_them}"


class Learnt(msgspec.Struct, frozen=True):
    """What became of the edits. steps: of all classes; tested, accepted: of them."""

    steps: int
    tested: int
    accepted: int


def verdict(
    learnt: Learnt, *, is_seed: bool, test: Compared | None = None, val: Compared | None = None
) -> str:
    """What may be said. is_seed: the best package is the seed's; else test, val compare the two."""
    if is_seed:
        return _nothing(learnt)
    if test is not None and test.paired.pairs:
        return _claim(test)
    if test is not None:
        return "No improvement shown: no test question was answered under both packages."
    unsaid = "No improvement is claimed: test was not evaluated (trainer.run_holdout_eval)."
    if val is None or not val.paired.pairs:
        return unsaid
    return (
        f"{unsaid} On val, which chose it and so flatters it, the trained package answers "
        f"{_share(val.after, val.planned)}, {val.words}."
    )


def _nothing(learnt: Learnt) -> str:
    if learnt.steps == 0:
        return "Nothing was learnt because no step was made."
    if learnt.tested == 0:
        return f"Nothing was learnt because no edit was proposed in {_steps(learnt.steps)}."
    if learnt.accepted == 0:
        edits = "the only edit" if learnt.tested == 1 else f"none of the {learnt.tested} edits"
        how = "was not accepted" if learnt.tested == 1 else "was accepted"
        return f"Nothing was learnt because {edits} that the gate looked at {how}."
    return (
        f"No improvement shown: {learnt.accepted} of {learnt.tested} edits were accepted, but no "
        "package was better than the seed's on val."
    )


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def _claim(test: Compared) -> str:
    said = (
        f"he trained package answers {_share(test.after, test.planned)} of the test questions, "
        f"{test.words}."
    )
    if test.paired.p <= LEVEL:
        return f"T{said}"
    if test.paired.p_loss <= LEVEL:
        return f"The training did harm: t{said}"
    return f"No improvement shown: t{said}"


def _share(right: int, planned: int) -> str:
    return f"{100 * right / planned:.1f} %"
