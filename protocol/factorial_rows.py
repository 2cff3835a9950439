"""Rows of ``run.db`` that the factorial gate writes.

None of them has a ``run_key``: a step that runs again must not take edits with it whose pairs may
have been drawn, nor a pair.
"""

from __future__ import annotations

from typing import ClassVar

from protocol.row import Row

__all__ = ["PROMPTS", "FactorialEditRow", "FactorialRunRow", "FactorialScheduleRow", "PairRow"]

PROMPTS = "_prompts"
"""In the place of a class: the edits of the system prompt and the tool prompts, one set for all."""


class FactorialScheduleRow(Row, frozen=True, kw_only=True, tag=True):
    """What a class will draw, written before the first draw.

    design, gate: JSON lists of [unit id, questions]; counts: JSON, pairs of [phase][gate unit].
    """

    TABLE: ClassVar[str] = "factorial_schedule"
    KEY: ClassVar[tuple[str, ...]] = ("task_type",)

    task_type: str
    seed: int
    n_epochs: int
    budget: int
    design: str
    gate: str
    counts: str


class FactorialEditRow(Row, frozen=True, kw_only=True, tag=True):
    """An edit of a class, or its sentinel, as it was born; state to high are written at the end.

    task_type: the class, or ``PROMPTS``. document: as of ``EditRow``; only of an edit of the
    prompts it is not ``skill``. born: the epoch. position: place in the class's canonical order,
    the sentinel's is 0. edit: JSON ``Edit``, empty for the sentinel. group_id: the edits of which
    at most one can be on. proposed_by: the ``run_key`` of the step that proposed it.

    state: ``live`` until the run has decided; then ``adopted``, ``rejected`` or ``dropped`` (a
    sentinel stays live). wins to high: as of the gate's ``EditResult``; what an edit has come to
    in mid-run is told by its pairs alone, so that nothing can be counted twice.
    """

    TABLE: ClassVar[str] = "factorial_edits"
    KEY: ClassVar[tuple[str, ...]] = ("edit_id",)

    edit_id: str
    task_type: str
    born: int
    position: int
    edit: str
    group_id: str | None
    sentinel: bool
    proposed_by: str
    state: str = "live"
    wins: int | None = None
    losses: int | None = None
    seen: int | None = None
    pairs: int | None = None
    p: float | None = None
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    document: str = "skill"


class PairRow(Row, frozen=True, kw_only=True, tag=True):
    """Two draws of a unit. pair: from 1, over all phases of the class.

    coins: a JSON list of [edit id, sign, virtual], the class's edits before those of the prompts;
    with state ``open`` they are written before anything is drawn, and never change. state:
    ``open``, ``drawn`` or ``void``. right_a, right_b: JSON lists of right or wrong, one per
    question (null: lost); empty while the pair is open. outcome: sign of arm a minus arm b; null
    while open, and of a void pair.
    """

    TABLE: ClassVar[str] = "pairs"
    KEY: ClassVar[tuple[str, ...]] = ("task_type", "pair")

    task_type: str
    pair: int
    phase: int
    unit_id: str
    coins: str
    state: str = "open"
    right_a: str = ""
    right_b: str = ""
    outcome: int | None = None


class FactorialRunRow(Row, frozen=True, kw_only=True, tag=True):
    """The decision over all edits of the run; one row. q, cap: exact, as ``3/20``.

    n_edits: M. tau, cut: as of ``StepUp``. passed: edits with p <= cut, before groups. adopted: of
    them. ok: the sentinels look like coins; where they do not, nothing is adopted.
    """

    TABLE: ClassVar[str] = "factorial_run"
    KEY: ClassVar[tuple[str, ...]] = ("run",)

    run: int
    q: str
    cap: str
    n_edits: int
    tau: float
    cut: float | None
    passed: int
    adopted: int
    sentinel_wins: int
    sentinel_losses: int
    sentinel_p: float
    ok: bool
