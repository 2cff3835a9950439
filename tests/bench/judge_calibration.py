"""How often a judge is right about failures whose cause was planted.

    python -m tests.bench.judge_calibration
    python -m tests.bench.judge_calibration --base-url http://127.0.0.1:8000/v1 --model NAME
    python -m tests.bench.judge_calibration --config my_run.yaml --show

Without an endpoint the judge is the simulator. The diagnoser is the one of a run, with its
prompt, its re-ask and its waterfall; the cases are those of ``tests/diagnoser/cases``. Accuracy
counts degraded and missing judgements as wrong.

The simulator's causes follow the planted world and its noise (``twin.judge_noise``). How a
failure came about is drawn there, so that its error types say nothing, but for ``no_search``,
which needs no judge.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import anyio
import msgspec

from actors.config import ConfigError, load_config
from actors.logs import configure_logs
from actors.runtime.supervisor import Supervisor
from actors.system import Paths, answering_specs, uses_twin, with_twin_address
from actors.trainer.score import wilson
from actors.twin.process import base_url_of, bind_loopback
from protocol.base import Refused
from protocol.diagnoser import Cause, Diagnosis, ErrorType
from protocol.ledger import Record
from protocol.settings import Config
from tests.diagnoser.cases.build import CalibrationCase, calibration_cases, trace_rows
from tests.twin.conversations import QUESTIONS, WORLD

__all__ = ["Calibration", "Judged", "calibrate", "main", "report"]

_NEEDED = frozenset({"twin", "ledger", "cache", "llm", "diagnoser"})
_CAUSES: tuple[str, ...] = (*get_args(Cause), "degraded", "missing")
_ERROR_TYPES: tuple[str, ...] = get_args(ErrorType)

Judge = Callable[[CalibrationCase], Awaitable[Diagnosis]]


class Judged(msgspec.Struct, frozen=True):
    """A case and what the judge made of it."""

    case: CalibrationCase
    diagnosis: Diagnosis

    @property
    def cause(self) -> str:
        """As judged: a cause, ``degraded`` or ``missing``."""
        if self.diagnosis.degraded:
            return "degraded"
        return self.diagnosis.cause or "missing"


class Calibration(msgspec.Struct, frozen=True):
    """What can be said about a judge after these cases."""

    judged: tuple[Judged, ...]

    @property
    def right_causes(self) -> int:
        """Cases whose cause was told as it was planted."""
        return sum(item.cause == item.case.planted.cause for item in self.judged)

    @property
    def right_error_types(self) -> int:
        """Cases whose error type was told as it was planted."""
        return sum(
            item.diagnosis.error_type == item.case.planted.error_type for item in self.judged
        )

    @property
    def subtypes(self) -> tuple[int, int]:
        """Of the reasoning failures that were told as such: right subtypes, and all."""
        told = [
            item.diagnosis.subtype == item.case.planted.subtype
            for item in self.judged
            if item.diagnosis.error_type == item.case.planted.error_type == "reasoning_failure"
        ]
        return sum(told), len(told)

    def count(self, cause: str) -> int:
        """Cases that were judged so."""
        return sum(item.cause == cause for item in self.judged)


async def calibrate(judge: Judge, cases: Sequence[CalibrationCase], width: int) -> Calibration:
    """Have every case judged, ``width`` at a time; in the order of the cases."""
    found: list[Judged | None] = [None] * len(cases)
    limiter = anyio.CapacityLimiter(width)

    async def one(place: int, case: CalibrationCase) -> None:
        async with limiter:
            found[place] = Judged(case, await judge(case))

    async with anyio.create_task_group() as tasks:
        for place, case in enumerate(cases):
            tasks.start_soon(one, place, case)
    return Calibration(tuple(item for item in found if item is not None))


# -- what is printed --------------------------------------------------------------------


def report(found: Calibration, *, show: bool = False) -> str:
    """Both tables and the shares. show: also a line for every case whose cause was missed."""
    n = len(found.judged)
    subtypes, reasoned = found.subtypes
    parts = [
        "cause, planted (down) and judged (across)",
        _table(
            [(item.case.planted.cause, item.cause) for item in found.judged],
            get_args(Cause),
            _CAUSES,
        ),
        "error type, planted (down) and judged (across)",
        _table(
            [(item.case.planted.error_type, item.diagnosis.error_type) for item in found.judged],
            _ERROR_TYPES,
            _ERROR_TYPES,
        ),
        f"cause right         {_share(found.right_causes, n)}",
        f"error type right    {_share(found.right_error_types, n)}",
        f"subtype right       {_share(subtypes, reasoned)}",
        f"degraded            {_share(found.count('degraded'), n)}",
        f"missing             {_share(found.count('missing'), n)}",
    ]
    if show:
        parts += [_line(item) for item in found.judged if item.cause != item.case.planted.cause]
    return "\n".join(parts)


def _table(pairs: Sequence[tuple[str, str]], down: Sequence[str], across: Sequence[str]) -> str:
    counted = Counter(pairs)
    left = max(map(len, down))
    rows = [" " * left + "".join(f"  {name:>{len(name)}}" for name in across)]
    for name in down:
        cells = "".join(f"  {counted[name, other] or '.':>{len(other)}}" for other in across)
        rows.append(f"{name:<{left}}{cells}")
    return "\n".join([*rows, ""])


def _share(part: int, whole: int) -> str:
    low, high = wilson(part, whole)
    share = f"{part / whole:.1%}" if whole else "-"
    return f"{part:>3}/{whole:<3} {share:>6}  [{low:.1%}, {high:.1%}]"


def _line(item: Judged) -> str:
    planted, said = item.case.planted, item.diagnosis
    return (
        f"{item.case.name}: {planted.cause} {planted.subtype or planted.error_type}, judged "
        f"{item.cause} {said.subtype or said.error_type}; rule {said.rule or 'none'!r}; "
        f"{said.finding}"
    )


# -- asking a real endpoint, or the simulator in its own process --------------------------


async def _through_system(config: Config, cases: Sequence[CalibrationCase]) -> Calibration:
    with ExitStack() as stack:
        workspace = Path(stack.enter_context(TemporaryDirectory(prefix="trm-calibration-")))
        (workspace / "logs").mkdir()
        listener = stack.enter_context(bind_loopback()) if uses_twin(config) else None
        if listener is not None:
            config = with_twin_address(config, base_url_of(listener))
        paths = Paths(workspace=workspace, questions=QUESTIONS, trees=workspace, world=WORLD)
        wired = [s for s in answering_specs(config, paths, listener) if s.name in _NEEDED]
        async with Supervisor(wired, config.runtime, signals=True, stop_s=8.0) as system:

            async def judge(case: CalibrationCase) -> Diagnosis:
                await system.address("ledger").ask(Record(rows=trace_rows(case)))
                reply = await system.address("diagnoser").ask(case.request)
                assert not isinstance(reply, Refused), f"{case.name}: {reply}"
                return reply

            return await calibrate(judge, cases, config.diagnoser.concurrency)


def _config(arguments: argparse.Namespace) -> Config:
    assignments = ["cache.backend=none", "runtime.drain_s=1"]
    if arguments.base_url is not None:
        endpoint = {
            "name": "judge",
            "base_url": arguments.base_url,
            "model": arguments.model,
            "roles": ["search", "judge", "evolve", "vision"],
            "api_key_env": arguments.api_key_env,
        }
        assignments.append(f"llm.endpoints={msgspec.json.encode([endpoint]).decode()}")
    return load_config(arguments.config, [*assignments, *arguments.set])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.judge_calibration",
        description="Measures a judge on failures with a planted cause: confusion tables, "
        "accuracy with Wilson's 95 % interval, degraded share. Without an endpoint: the simulator.",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--base-url", help="an OpenAI-compatible endpoint; needs --model")
    where.add_argument("--config", type=Path, help="a run's file: its judge is asked")
    parser.add_argument("--model", help="the model at --base-url")
    parser.add_argument("--api-key-env", help="the variable that holds the key of --base-url")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="as of bin/train"
    )
    parser.add_argument(
        "--cases", type=int, metavar="N", help="only N cases, spread over all (default: all)"
    )
    parser.add_argument("--show", action="store_true", help="list the cases that were missed")
    return parser


def main(argv: Sequence[str]) -> int:
    """Measure and print; the exit status."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if (arguments.base_url is None) != (arguments.model is None):
        parser.error("--base-url and --model go together")
    try:
        config = _config(arguments)
    except ConfigError as error:
        parser.error(str(error))
    configure_logs(None, "warning", None)
    cases = calibration_cases()
    if arguments.cases is not None:
        step = max(1, -(-len(cases) // max(1, arguments.cases)))
        cases = cases[::step]
    judges = sorted({e.model for e in config.llm.endpoints if "judge" in e.roles})
    print(f"{len(cases)} cases, judged by {', '.join(judges)}\n")
    print(report(anyio.run(_through_system, config, cases), show=arguments.show))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
