"""What a dead run had written of its factorial gate, and whether its resumption let that be.

A coin that is in ``run.db`` is never drawn again, a pair that is drawn stays as it is, and no
answered question of a pair is asked again.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from actors.ledger.reader import open_reader
from protocol.factorial_rows import FactorialScheduleRow, PairRow
from protocol.ledger import Where
from protocol.rows import OutcomeRow

__all__ = ["Written", "changed", "written"]


class Written(msgspec.Struct, frozen=True):
    """schedules, pairs: rows. answered: (run_key, question) of pairs. logged: bytes of the log."""

    schedules: tuple[FactorialScheduleRow, ...] = ()
    pairs: tuple[PairRow, ...] = ()
    answered: frozenset[tuple[str, str]] = frozenset()
    logged: int = 0


def written(workspace: Path) -> Written:
    """Read a workspace whose run is dead; nothing if it died before it had one."""
    path = workspace / "run.db"
    if not path.exists():
        return Written()
    with open_reader(path) as reader:
        outcomes = reader.rows(OutcomeRow, Where(column="run_key", value="factorial/*"))
        return Written(
            schedules=tuple(reader.rows(FactorialScheduleRow)),
            pairs=tuple(reader.rows(PairRow)),
            answered=frozenset(
                (row.run_key, row.question_id) for row in outcomes if row.outcome != "missing"
            ),
            logged=(workspace / "logs" / "train.jsonl").stat().st_size,
        )


def changed(workspace: Path, before: Written) -> list[str]:
    """What the resumed run did to it, in words; empty: nothing."""
    after = written(workspace)
    found = []
    if before.schedules and after.schedules != before.schedules:
        found.append("the schedule is another")
    pairs = {(row.task_type, row.pair): row for row in after.pairs}
    for row in before.pairs:
        now = pairs.get((row.task_type, row.pair))
        if now is None or now.coins != row.coins or (row.state != "open" and now != row):
            found.append(f"{row.task_type}, pair {row.pair}: was {row}, is {now}")
    with (workspace / "logs" / "train.jsonl").open("rb") as log:
        log.seek(before.logged)
        events = [json.loads(line) for line in log if line.startswith(b"{")]
    found += [
        f"{event['run_key']} {event['question_id']}: answered again"
        for event in events
        if event["event"] == "rollout.done"
        and (event["run_key"], event["question_id"]) in before.answered
    ]
    return found
