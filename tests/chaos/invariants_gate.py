"""A gate's decision, counted again from the candidate's outcomes and the baseline's draws."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

import msgspec

from actors.gate.eprocess import UnitResult, core, unit_result
from actors.gate.looks import block_ends
from protocol.gate import Look
from protocol.rows import BaselineRow, DecisionRow, OutcomeRow

__all__ = ["broken_decisions"]

Outcomes = Mapping[str, Mapping[str, OutcomeRow]]


def broken_decisions(
    decisions: Iterable[DecisionRow], outcomes: Outcomes, baseline: Sequence[BaselineRow]
) -> Iterator[str]:
    """What a decision says that its rows do not. outcomes: by pass, then question."""
    for row in decisions:
        if row.snapshot_hash:  # else nothing was read: the candidate was the current text
            yield from _broken_decision(row, outcomes, baseline)


def _broken_decision(
    row: DecisionRow, outcomes: Outcomes, baseline: Sequence[BaselineRow]
) -> Iterator[str]:
    confirmed = len(msgspec.json.decode(row.stages)) > 1
    draws = _draws(row, baseline, confirmed=confirmed)
    blocks = _blocks(row, outcomes, confirmed=confirmed)
    results = [_result(unit, draws) for block in blocks for unit in block]
    ends = block_ends(row.n_units)
    seen = [sum(len(block) for block in blocks[: i + 1]) for i in range(len(blocks))]
    if seen != list(ends[: len(blocks)]):
        yield f"decision {row.run_key}: blocks end at {seen}, the plan is {ends}"
    counted = [_look(results[:end]) for end in seen]
    told = msgspec.json.decode(row.looks, type=list[Look])
    if told != counted:
        yield f"decision {row.run_key}: looks {told}, counted {counted}"
    last = counted[-1] if counted else _look(())
    said = (row.wins, row.losses, row.ties, row.missing, row.evaluated)
    evaluated = last.wins + last.losses + last.ties
    if said != (last.wins, last.losses, last.ties, last.missing, evaluated):
        yield f"decision {row.run_key}: W, L, T, missing, evaluated {said}, counted {last}"
    answered = sum(len(unit) for block in blocks for unit in block)
    if not confirmed and row.rollouts < answered:
        yield f"decision {row.run_key}: {row.rollouts} rollouts gave {answered} answers"


def _draws(
    row: DecisionRow, baseline: Sequence[BaselineRow], *, confirmed: bool
) -> dict[str, list[bool]]:
    """question id -> right, oldest draw first, of the snapshot that the last stage read."""
    wanted = (
        row.task_type,
        row.snapshot_hash,
        row.prompts_version,
        0 if confirmed else row.generation,
        row.run_key if confirmed else "",
    )
    found: dict[str, list[bool]] = defaultdict(list)
    for draw in sorted(baseline, key=lambda one: one.draw):
        key = (
            draw.task_type,
            draw.skill_hash,
            draw.prompts_version,
            draw.generation,
            draw.confirms,
        )
        if key == wanted:
            found[draw.question_id].append(draw.right)
    return found


def _blocks(
    row: DecisionRow, outcomes: Outcomes, *, confirmed: bool
) -> list[list[list[OutcomeRow]]]:
    """[block][unit][question]; a unit is what a class asks about one video."""
    blocks: list[list[list[OutcomeRow]]] = []
    for index in count():
        answers = outcomes.get(f"{row.run_key}/{'confirm' if confirmed else 'gate'}/b{index}")
        if answers is None:
            return blocks
        units: dict[str, list[OutcomeRow]] = defaultdict(list)
        for answer in answers.values():
            units[answer.video_id].append(answer)
        blocks.append(list(units.values()))
    raise AssertionError("count() never ends")


def _result(unit: Sequence[OutcomeRow], draws: Mapping[str, list[bool]]) -> UnitResult | None:
    """Over the pairs that have both arms; None: there is none."""
    pairs = [
        (draws[answer.question_id], answer.outcome == "right")
        for answer in unit
        if answer.outcome != "missing" and draws.get(answer.question_id)
    ]
    if not pairs:
        return None
    return unit_result([drawn for drawn, _ in pairs], [right for _, right in pairs])


def _look(results: Sequence[UnitResult | None]) -> Look:
    whole = [result for result in results if result is not None]
    return Look(
        units=len(results),
        wins=sum(result.sign > 0 for result in whole),
        losses=sum(result.sign < 0 for result in whole),
        ties=sum(result.sign == 0 for result in whole),
        missing=len(results) - len(whole),
        e=float(core(whole)),
    )
