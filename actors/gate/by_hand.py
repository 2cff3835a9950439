"""Outcomes typed by hand through the gate: ``WWTL TTWM``, every block a look.

Pure; the same looks and the same endgame as in training, without a ladder behind them: rules
that need the baseline (missing answers' worst case, solid records) cannot apply.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import msgspec

from actors.gate.eprocess import UnitResult, core, exact_alpha, judge, losses, ties, wins
from actors.gate.mixture import harm_e, lower_bound

__all__ = ["BlockCounts", "JudgedBlocks", "judge_blocks"]

_SIGNS: dict[str, Literal[-1, 0, 1]] = {"W": 1, "L": -1, "T": 0}


class BlockCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Cumulative counts after a block, and the core's value there."""

    W: int
    L: int
    T: int
    missing: int
    e: float


class JudgedBlocks(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate makes of the blocks.

    accept_block: from 1, the block whose look accepts; None if none does.
    reason: ``core``, ``endgame``, ``endgame infeasible`` or ``open`` (more is to come).
    crit_wins: fewest wins in the last block that accept. e_final: the stake after the endgame.
    lower_bound: of the mean gain per unit, over all units given.
    harm_e: evidence of harm; 10 stops a test.
    futile_core, futile: whether winning all that remain could not reach an accept by the core
        alone, or by any look; None unless what remains was given.
    """

    blocks: tuple[BlockCounts, ...]
    alpha: float
    accept_block: int | None
    reason: str
    crit_wins: int | None
    e_final: float | None
    p_gate: float
    verdict: Literal["accept", "reject", "undecided"]
    lower_bound: float
    harm_e: float
    futile_core: bool | None
    futile: bool | None


def judge_blocks(
    blocks: Sequence[str], alpha: float, wrong_remaining: int | None = None
) -> JudgedBlocks:
    """Judge blocks of the letters W, L, T and M (missing); order inside one is irrelevant.

    wrong_remaining: baseline-wrong units still to come. None or 0: the last block is the
    endgame. More: it is a core look like the others, and the verdict is ``undecided`` as long
    as winning them all could accept.

    Raises ValueError for another letter, a level outside (0, 1) or a negative number.
    """
    if wrong_remaining is not None and wrong_remaining < 0:
        raise ValueError(f"wrong units remaining cannot be {wrong_remaining}")
    level = exact_alpha(alpha)
    groups = [_results(block) for block in blocks]
    ended = not wrong_remaining
    judged = judge(groups, level, ended=ended)
    e = judged.core[-1] if judged.core else Fraction(1)
    futile_core: bool | None = None
    futile: bool | None = None
    if wrong_remaining is not None:
        won = [UnitResult(sign=1)] * wrong_remaining
        futile_core = e * core(won) * level < 1
        final = judged if ended else judge([*groups, won], level, ended=True)
        futile = final.accepted is None
    verdict: Literal["accept", "reject", "undecided"] = "reject"
    if judged.accepted is not None:
        verdict = "accept"
    elif not ended and not futile:
        verdict = "undecided"
    flat = [r for group in groups for r in group]
    return JudgedBlocks(
        blocks=_counts(blocks, [float(value) for value in judged.core]),
        alpha=alpha,
        accept_block=None if judged.accepted is None else judged.accepted + 1,
        reason=judged.reason,
        crit_wins=judged.critical,
        e_final=None if judged.e_final is None else float(judged.e_final),
        p_gate=float(judged.p),
        verdict=verdict,
        lower_bound=lower_bound([r.gain for r in flat], alpha),
        harm_e=harm_e(flat),
        futile_core=futile_core,
        futile=futile,
    )


def _results(block: str) -> list[UnitResult]:
    unknown = sorted(set(block) - {*_SIGNS, "M"})
    if unknown:
        raise ValueError(f"a block holds W, L, T and M only, not {', '.join(map(repr, unknown))}")
    return [
        UnitResult(sign=_SIGNS[letter], gain=float(_SIGNS[letter]))
        for letter in block
        if letter != "M"
    ]


def _counts(blocks: Sequence[str], values: Sequence[float]) -> tuple[BlockCounts, ...]:
    rows: list[BlockCounts] = []
    so_far = ""
    for block, e in zip(blocks, values, strict=True):
        so_far += block
        units = _results(so_far)
        rows.append(
            BlockCounts(
                W=wins(units), L=losses(units), T=ties(units), missing=so_far.count("M"), e=e
            )
        )
    return tuple(rows)
