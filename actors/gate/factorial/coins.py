"""Who is on in which arm: a fair coin per edit and pair, fixed before any draw. Pure.

A coin is a hash of (seed, class, pair, edit): the same however pairs interleave, whoever else is
live, and whenever it is asked for, so that a resumed run finds the coins of a stopped one. It
never depends on an outcome.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from actors.gate.factorial.keyed import keyed_integer
from actors.gate.factorial.schedule import Pair
from actors.gate.factorial.states import FactorialEdit
from protocol.factorial_rows import PROMPTS

__all__ = ["Arm", "Coin", "PairCoins", "Sign", "draw_coins", "fair_coin"]

Arm = Literal["a", "b"]
Sign = Literal[-1, 1]


class Coin(msgspec.Struct, frozen=True):
    """One edit in one pair. sign: 1 on in arm a and off in b, -1 the other way round.

    virtual: the edit was dropped and is off in both arms; it would have taken part.
    """

    edit_id: str
    sign: Sign
    virtual: bool = False


class PairCoins(msgspec.Struct, frozen=True):
    """A pair and the coins of the edits that take part in it, in the order of the edits."""

    pair: Pair
    coins: tuple[Coin, ...]

    def on(self, arm: Arm) -> tuple[str, ...]:
        """The edits that are on in this arm; of every live one that takes part, just one arm."""
        wanted = 1 if arm == "a" else -1
        return tuple(
            coin.edit_id for coin in self.coins if coin.sign == wanted and not coin.virtual
        )


def fair_coin(seed: int, pair: Pair, edit_id: str) -> Sign:
    """The edit's coin in this pair."""
    return 1 if keyed_integer("coin", seed, pair.task_type, pair.index, edit_id) & 1 else -1


def draw_coins(seed: int, pair: Pair, edits: Sequence[FactorialEdit]) -> PairCoins:
    """The coins of all edits of the pair's class, and of the prompts, that were born by its phase.

    edits: of one class and then those of the prompts, in canonical order; later ones are left out,
    decided ones must not come.
    Of an exclusive group one random live member takes part, the others are off in both arms. A
    dropped member takes part, virtually, where it would have been that one had it been live.

    Raises ValueError for edits of another class, two of one id, or a decided edit.
    """
    born = [edit for edit in edits if edit.born <= pair.phase]
    _check(pair, edits)
    picked = _picked(seed, pair, born)
    return PairCoins(
        pair,
        tuple(
            Coin(edit.edit_id, fair_coin(seed, pair, edit.edit_id), edit.state == "dropped")
            for edit in born
            if edit.edit_id in picked
        ),
    )


def _check(pair: Pair, edits: Sequence[FactorialEdit]) -> None:
    where = f"{pair.task_type}, pair {pair.index}"
    if len({edit.edit_id for edit in edits}) < len(edits):
        raise ValueError(f"{where}: two edits have the same id")
    for edit in edits:
        if edit.task_type not in (pair.task_type, PROMPTS):
            raise ValueError(f"{where}: {edit.edit_id} is of {edit.task_type}")
        if edit.state not in ("live", "dropped"):
            raise ValueError(f"{where}: {edit.edit_id} is decided, no pair is drawn for it")


def _picked(seed: int, pair: Pair, edits: Iterable[FactorialEdit]) -> set[str]:
    """Who takes part: everybody without a group, and of each group the lowest ticket.

    The ticket has a key of its own, so that being picked says nothing about the coin.
    """
    picked: set[str] = set()
    tickets: dict[str, list[tuple[int, FactorialEdit]]] = {}
    for edit in edits:
        if edit.group is None:
            picked.add(edit.edit_id)
        else:
            ticket = keyed_integer("ticket", seed, pair.task_type, pair.index, edit.edit_id)
            tickets.setdefault(edit.group, []).append((ticket, edit))
    for members in tickets.values():
        lowest = min((t for t, edit in members if edit.state == "live"), default=None)
        picked.update(
            edit.edit_id for ticket, edit in members if lowest is None or ticket <= lowest
        )
    return picked
