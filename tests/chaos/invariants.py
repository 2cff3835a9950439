"""What must hold in every workspace, however often its run was disturbed.

    python -m tests.chaos.invariants WORKSPACE ...

Nothing here compares with another run: every number of a row that others decide on is counted
again from the rows below it, under either design of the gate. Rows of an epoch that is not whole
are let be, since a resumed run begins that step anew.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from math import fsum
from pathlib import Path

from actors.ledger import schema
from actors.ledger.reader import open_reader
from actors.ledger.sqlite import read_only_uri
from protocol.keys import step_key
from protocol.rollout import soft_score
from protocol.rows import StepRow
from tests.chaos.invariants_factorial import broken_factorial
from tests.chaos.invariants_files import broken_files
from tests.chaos.invariants_gate import broken_decisions
from tests.chaos.rows import Run, draw_key, read_run, tally, wrong_fields

__all__ = ["broken", "main"]

_VERDICTS = ("accept", "reject", "undecided", "untestable")


def broken(workspace: Path) -> list[str]:
    """Everything that does not hold, in words; empty: all does."""
    path = workspace / "run.db"
    found = list(_broken_keys(path))
    with open_reader(path) as reader:
        run = read_run(reader)
    checks = (
        _broken_rollouts,
        _broken_places,
        _broken_steps,
        _broken_baseline,
        _broken_evaluations,
        _broken_slow_updates,
        _broken_epochs,
        _broken_accounts,
        broken_factorial,
    )
    for check in checks:
        found += check(run)
    found += broken_decisions(run.decisions.values(), run.outcomes, run.baseline)
    found += broken_files(workspace, run.epochs, list(run.evaluations.values()), run.outcomes)
    return found


def _broken_keys(path: Path) -> Iterator[str]:
    """The file itself, and that no key is there twice: asked of SQLite, past our own code."""
    with closing(sqlite3.connect(read_only_uri(path), uri=True)) as connection:
        for (said,) in connection.execute("PRAGMA integrity_check"):
            if said != "ok":
                yield f"run.db: {said}"
        for table, kind in schema.ROW_TYPES.items():
            key = ", ".join(f'"{name}"' for name in kind.KEY)
            twice = f'SELECT {key} FROM "{table}" GROUP BY {key} HAVING count(*) > 1'
            for row in connection.execute(twice):
                yield f"{table}: {row} is there twice"


def _broken_rollouts(run: Run) -> Iterator[str]:
    """An outcome is the sum of its steps (P0-2), and no step is without an outcome."""
    for run_key, question_id in run.traces:
        if question_id not in run.outcomes.get(run_key, {}):
            yield f"traces of {run_key} {question_id} have no outcome"
    for run_key, answers in run.outcomes.items():
        for question_id, row in answers.items():
            steps = run.traces.get((run_key, question_id), [])
            counted = {
                "n_steps": len(steps),
                "prompt_tokens": sum(step.prompt_tokens for step in steps),
                "completion_tokens": sum(step.completion_tokens for step in steps),
                "unreadable": sum(step.tool is None for step in steps),
                "dropped": sum(step.dropped for step in steps),
            }
            yield from wrong_fields(f"outcome {run_key} {question_id}", row, counted)
            if [step.step for step in steps] != list(range(1, len(steps) + 1)):
                yield f"traces of {run_key} {question_id}: steps {[s.step for s in steps]}"
            if row.outcome not in ("right", "wrong", "missing"):
                yield f"outcome {run_key} {question_id} is {row.outcome!r}"
            if (row.outcome == "missing") != (row.missing_kind is not None):
                yield f"outcome {run_key} {question_id}: {row.outcome}, kind {row.missing_kind}"


def _broken_places(run: Run) -> Iterator[str]:
    """Every row lies under a step, a pass, a slow update or a snapshot that is whole."""
    drawn = {draw_key(row) for row in run.baseline}
    passes = {row.outcomes_key for row in run.evaluations.values()}
    keys = [
        *run.outcomes,
        *(row.run_key for row in run.diagnoses),
        *(row.run_key for row in run.edits),
        *run.decisions,
        *(row.run_key for row in run.rejected),
        *run.steps,
        *run.evaluations,
    ]
    for key in dict.fromkeys(keys):
        first, _, rest = key.partition("/")
        if first in ("aa", "factorial"):  # the latter: see broken_factorial
            continue
        if first == "baseline":
            if key not in drawn and any(r.outcome != "missing" for r in run.outcomes[key].values()):
                yield f"{key}: answers without a draw"
            continue
        if not (first.startswith("e") and first[1:].isdigit()):
            yield f"{key}: is the name of nothing"
            continue
        epoch = int(first[1:])
        if epoch > run.last:
            continue  # under way
        part, _, below = rest.partition("/")
        if part == "slow":
            whole = epoch in run.slow
        elif part in ("val", "test"):
            whole = key in run.evaluations or key in passes
        else:
            whole = f"{first}/{part}/{below.partition('/')[0]}" in run.steps
        if not whole:
            yield f"{key}: rows of something that is not whole"


def _broken_steps(run: Run) -> Iterator[str]:
    """A step's row says what lies below it, and steps hand their skill on."""
    chains: dict[tuple[int, str], list[StepRow]] = defaultdict(list)
    for key, row in run.steps.items():
        if key != step_key(row.epoch, row.task_type, row.step):
            yield f"step {key}: its row is of {row.epoch}, {row.task_type}, {row.step}"
        chains[row.epoch, row.task_type].append(row)
        answers = run.outcomes.get(f"{key}/rollout", {})
        yield from wrong_fields(f"step {key}", row, tally(answers))
        judged = {d.question_id: d for d in run.diagnoses if d.run_key == f"{key}/rollout"}
        wrong = {name for name, answer in answers.items() if answer.outcome == "wrong"}
        if judged.keys() != wrong:
            yield f"step {key}: diagnosed {sorted(judged)}, wrong were {sorted(wrong)}"
        yield from wrong_fields(
            f"step {key}", row, {"degraded": sum(d.degraded for d in judged.values())}
        )
        if not run.schedules:  # else no step has a verdict: see broken_factorial
            yield from _broken_verdict(run, row)
    for (epoch, task_type), rows in chains.items():
        rows.sort(key=lambda row: row.step)
        if [row.step for row in rows] != list(range(1, len(rows) + 1)):
            yield f"epoch {epoch}, {task_type}: steps {[row.step for row in rows]}"
        for before, after in pairwise(rows):
            if before.skill_after != after.skill_before:
                yield f"step {after.run_key}: began with another skill than {before.run_key} left"
    positions: dict[str, list[int]] = defaultdict(list)
    for edit in run.edits:
        positions[edit.run_key].append(edit.position)
    for key, found in positions.items():
        if sorted(found) != list(range(len(found))):
            yield f"edits {key}: positions {sorted(found)}"


def _broken_verdict(run: Run, row: StepRow) -> Iterator[str]:
    """The step's result is the gate's, and the skill that it left follows from it."""
    key, decision = row.run_key, run.decisions.get(row.run_key)
    if (decision is None) != (row.result not in _VERDICTS):
        yield f"step {key}: result {row.result}, decision {decision and decision.verdict}"
        return
    if decision is None:
        expected = row.skill_before
    else:
        expected = decision.candidate_hash if row.result == "accept" else row.skill_before
        said = {"verdict": row.result, "current_hash": row.skill_before}
        yield from wrong_fields(f"decision {key}", decision, {**said, "step": row.step})
        for text in (decision.current_hash, decision.candidate_hash):
            if text not in run.documents:
                yield f"decision {key}: the text {text} is nowhere"
    if row.skill_after != expected:
        yield f"step {key}: {row.result} left {row.skill_after}, expected {expected}"
    rejected = sum(one.run_key == key for one in run.rejected)
    if rejected != (decision is not None and decision.verdict == "reject"):
        yield f"step {key}: {row.result}, and {rejected} rows in the rejected ledger"


def _broken_baseline(run: Run) -> Iterator[str]:
    """A draw is the outcome that it was made of, once; the oldest draw is number 0."""
    draws: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for row in run.baseline:
        draws[
            row.task_type,
            row.skill_hash,
            row.prompts_version,
            row.generation,
            row.confirms,
            row.question_id,
        ].append(row.draw)
        if row.source == "seed":
            continue
        answer = run.outcomes.get(draw_key(row), {}).get(row.question_id)
        if answer is None or answer.outcome != ("right" if row.right else "wrong"):
            said = None if answer is None else answer.outcome
            yield f"baseline {draw_key(row)} {row.question_id}: right {row.right}, outcome {said}"
    for key, numbers in draws.items():
        if sorted(numbers) != list(range(len(numbers))):
            yield f"baseline {key}: draws {sorted(numbers)}"
    kept = {(draw_key(row), row.question_id) for row in run.baseline}
    for run_key, answers in run.outcomes.items():
        if run_key.startswith("baseline/"):
            for name, answer in answers.items():
                if answer.outcome != "missing" and (run_key, name) not in kept:
                    yield f"{run_key} {name}: answered, and no draw"


def _broken_evaluations(run: Run) -> Iterator[str]:
    """Every row is the count of its pass; a whole epoch has one ``fast`` and one ``final``."""
    for key, row in run.evaluations.items():
        if row.outcomes_key == "seed":
            continue
        answers = run.outcomes.get(row.outcomes_key, {})
        told = [answer for answer in answers.values() if answer.outcome != "missing"]
        softs = [soft_score(answer.confidence, answer.outcome == "right") for answer in told]
        counted: dict[str, object] = dict(tally(answers))
        soft = fsum(softs) / len(softs) if softs else 0.0
        right = sum(answer.outcome == "right" for answer in told)
        counted["soft"] = soft
        counted["mixed"] = 0.5 * (right / len(answers) if answers else 0.0) + 0.5 * soft
        yield from wrong_fields(f"evaluation {key}", row, counted)
        if {answer.prompts_version for answer in told} - {row.prompts_version}:
            yield f"evaluation {key}: answered under other prompts than {row.prompts_version}"
    kinds = Counter((row.epoch, row.kind) for row in run.evaluations.values() if row.pool == "val")
    if run.epochs and kinds[0, "seed"] != 1:
        yield f"evaluations: {kinds[0, 'seed']} rows of the seed on val"
    for epoch in range(1, run.last + 1):
        adopts = not run.schedules or any(
            row.epoch == epoch and row.result == "accept" for row in run.steps.values()
        )
        for kind, wanted in (("fast", int(adopts)), ("final", 1)):
            if kinds[epoch, kind] != wanted:
                yield f"evaluations: {kinds[epoch, kind]} rows {kind} on val in epoch {epoch}"


def _broken_slow_updates(run: Run) -> Iterator[str]:
    """What is final follows from the verdict; the verdict's counts from the two passes."""
    for epoch in range(1, run.last + 1):
        row = run.slow.get(epoch)
        final = run.evaluations.get(f"e{epoch}/val/final")
        if row is None:
            if run.slow:
                yield f"epoch {epoch}: no slow update, but others have one"
            continue
        kept = "slow_candidate" if row.result == "kept" else "fast"
        expected = run.evaluations.get(f"e{epoch}/val/{kept}")
        if final is None or expected is None:
            yield f"epoch {epoch}: {row.result}, but the rows {kept} and final are not both there"
            continue
        same = ("skills_version", "prompts_version", "right", "missing", "outcomes_key")
        yield from wrong_fields(
            f"epoch {epoch}, final", final, {name: getattr(expected, name) for name in same}
        )
        refused = sum(one.run_key.startswith(f"e{epoch}/slow/") for one in run.rejected)
        if (row.result == "dropped") != (refused > 0):
            yield f"epoch {epoch}: slow update {row.result}, {refused} rows in the rejected ledger"
        if row.result in ("kept", "dropped"):
            yield from wrong_fields(f"slow update {epoch}", row, _paired(run, epoch))


def _paired(run: Run, epoch: int) -> dict[str, int]:
    before, after = (
        {
            name: answer.outcome == "right"
            for name, answer in run.outcomes.get(f"e{epoch}/val/{kind}", {}).items()
            if answer.outcome != "missing"
        }
        for kind in ("fast", "slow_candidate")
    )
    common = before.keys() & after.keys()
    return {
        "pairs": len(common),
        "wins": sum(after[name] and not before[name] for name in common),
        "losses": sum(before[name] and not after[name] for name in common),
    }


def _broken_epochs(run: Run) -> Iterator[str]:
    """Epochs follow each other, and say what was tested in them and what they ended with."""
    if [row.epoch for row in run.epochs] != list(range(1, len(run.epochs) + 1)):
        yield f"epochs: {[row.epoch for row in run.epochs]}"
    for row in run.epochs:
        decided = [d for d in run.decisions.values() if d.epoch == row.epoch and d.rollouts > 0]
        counted: dict[str, object] = {
            "tests": len(decided),
            "accepted": sum(d.verdict == "accept" for d in decided),
        }
        final = run.evaluations.get(f"e{row.epoch}/val/final")
        if final is not None:
            counted["skills_version"] = final.skills_version
            counted["prompts_version"] = final.prompts_version
        yield from wrong_fields(f"epoch {row.epoch}", row, counted)


def _broken_accounts(run: Run) -> Iterator[str]:
    """No answer without its try (or its hit), no try out of order, no number below zero."""
    tries = {(row.call, row.attempt) for row in run.attempts if row.outcome != "cached"}
    for call, attempt in sorted(tries):
        if attempt < 1 or (attempt > 1 and (call, attempt - 1) not in tries):
            yield f"attempts: {call[:12]} has a try {attempt} and none before it"
    for row in run.attempts:
        numbers = (row.seconds, row.first_token_s or 0.0, row.prompt_tokens, row.completion_tokens)
        if min(numbers) < 0:
            yield f"attempts: {row.call[:12]} {row.started}: below zero"
        if row.outcome == "cached" and (row.attempt, sum(numbers)) != (0, 0):
            yield f"attempts: {row.call[:12]} {row.started}: a hit that cost something"
    if any(row.role == "vision" for row in run.attempts):
        return  # a step's tokens are then of two chats
    asked = [row for row in run.attempts if row.role == "search"]
    billed = {(r.prompt_tokens, r.completion_tokens) for r in asked if r.outcome == "ok"}
    steps = [step for steps in run.traces.values() for step in steps]
    served = sum(row.outcome in ("ok", "cached") for row in asked)
    if served < len(steps):
        yield f"attempts: {served} answers to the agent, but {len(steps)} steps"
    for step in steps:
        if (step.prompt_tokens, step.completion_tokens) not in billed:
            yield f"traces {step.run_key} {step.question_id} {step.step}: tokens that nobody billed"


def main(arguments: Sequence[str]) -> int:
    """Check workspaces; exit code 1 if anything is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.invariants")
    parser.add_argument("workspaces", nargs="+", type=Path)
    whole = True
    for workspace in parser.parse_args(arguments).workspaces:
        found = broken(workspace)
        whole = whole and not found
        sys.stdout.write("\n".join([f"{workspace}: {len(found)} broken", *found]) + "\n")
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
