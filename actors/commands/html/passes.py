"""What a pass is called, by its ``run_key``, and where its outcomes stand in the list. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

__all__ = ["BASELINE", "Pass", "pass_of", "passes_of"]

BASELINE = "seed"
"""The ``key`` of the seed's own answers, which are no pass of the run."""

_EVALUATION = re.compile(r"e(\d+)/(diag|val|test)/(\w+)")
_SLOW = re.compile(r"e(\d+)/slow/(before|after)")
_STEP = re.compile(r"e(\d+)/([^/]+)/s(\d+)/(rollout|gate)\b(.*)")
_PAIR = re.compile(r"factorial/[^/]+/p(\d+)/(\d+)/([ab])")
_BLOCK = re.compile(r"b(\d+)$")

_KINDS = {
    "seed": ("seed", "the seed's documents"),
    "fast": ("fast", "before the slow update"),
    "slow_candidate": ("slow", "the slow update's candidate"),
    "final": ("final", "at its end"),
    "best_hard": ("best", "the best package"),
    "best_mixed": ("best mixed", "the best package by mixed score"),
}


class Pass(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """order: where it stands. column: the short name of its column. main: its transcripts come
    before those of others where there is no room for all."""

    order: tuple[int, int, int, int]
    column: str
    label: str
    key: str
    main: bool


def pass_of(run_key: str) -> Pass:
    """What a ``run_key`` says; one of another form keeps it as its name."""
    if run_key == BASELINE:
        return _made(run_key, (0, 0, 0, 0), "baseline", "The seed's own answer", main=False)
    if found := _EVALUATION.fullmatch(run_key):
        return _evaluation(run_key, int(found[1]), found[2], found[3])
    if found := _STEP.fullmatch(run_key):
        return _step(run_key, found)
    if found := _SLOW.fullmatch(run_key):
        epoch, when = int(found[1]), found[2]
        label = f"Epoch {epoch}, slow update: {'first' if when == 'before' else 'last'} package"
        order = (epoch, 3, 0, int(when == "after"))
        return _made(run_key, order, f"e{epoch} slow", label, main=False)
    if found := _PAIR.fullmatch(run_key):
        phase, pair = int(found[1]), int(found[2])
        label = f"Phase {phase}, pair {pair}, arm {found[3]}"
        order = (phase, 2, pair, int(found[3] == "b"))
        return _made(run_key, order, f"pairs {phase}", label, main=False)
    if run_key.startswith("baseline/"):
        return _made(run_key, (0, 1, 0, 0), "snapshot", "Snapshot of the current skill", main=False)
    return _made(run_key, (10_000, 0, 0, 0), "other", run_key, main=False)


def _made(
    key: str, order: tuple[int, int, int, int], column: str, label: str, *, main: bool
) -> Pass:
    return Pass(key=key, order=order, column=column, label=label, main=main)


def _evaluation(key: str, epoch: int, pool: str, kind: str) -> Pass:
    short, words = _KINDS.get(kind, (kind, kind))
    rank = [*_KINDS, kind].index(kind)
    if epoch == 0:
        return _made(key, (0, 2, rank, 0), short, f"Before training, {pool}: {words}", main=True)
    column = f"e{epoch}" if pool == "test" and kind == "final" else f"e{epoch} {short}"
    label = f"Epoch {epoch}, {pool}: {words}"
    return _made(key, (epoch, 4, rank, 0), column, label, main=True)


def _step(key: str, found: re.Match[str]) -> Pass:
    epoch, step, what, rest = int(found[1]), int(found[3]), found[4], found[5]
    if what == "rollout":
        label = f"Epoch {epoch}, step {step}: answered for the editor"
        return _made(key, (epoch, 1, step, 0), f"e{epoch} step", label, main=True)
    block = _BLOCK.search(rest)
    number = int(block[1]) + 1 if block else 0
    second = ", second stage" if "confirm" in rest else ""
    label = f"Epoch {epoch}, step {step}: the gate's candidate{second}" + (
        f", block {number}" if number else ""
    )
    return _made(key, (epoch, 2, step, number), f"e{epoch} gate", label, main=False)


def passes_of(run_keys: Iterable[str]) -> list[Pass]:
    """Every pass once, in the order of the run."""
    return sorted({pass_of(key) for key in run_keys})
