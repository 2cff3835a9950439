"""``bin/trm check``, or ``bin/train --check``: all that a run needs, a line each; nothing is begun.

Reads files, makes one or two small calls per endpoint and role, and says what a run would see and
cost. Whatever fails becomes a line. The decisions stand in ``check_data``, ``check_place``,
``check_endpoints`` and ``check_preview``; here they are only asked one after the other.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from rich.console import Group

from actors.commands.check_calls import Heard, Models, ask_all, embed_once, list_models, silence_s
from actors.commands.check_data import Material, look_at_data
from actors.commands.check_endpoints import embedding_line, endpoint_lines
from actors.commands.check_left import pairs_left
from actors.commands.check_line import Line, fail, fine, shown, stops, warn
from actors.commands.check_place import (
    Machine,
    cache_line,
    clock_line,
    disk_line,
    files_line,
    target_line,
    versions_lines,
)
from actors.commands.check_preview import Preview, gain_lines, preview_of
from actors.commands.check_probes import probes_of, roles_of
from actors.commands.check_subject import Subject, config_lines, resume_lines, subject_of
from actors.commands.console import on_terminal, show, while_waiting
from actors.commands.run_options import add_run_options
from actors.commands.seed_options import write
from actors.commands.splitting import Split
from actors.config import ConfigError
from actors.dataset.units import make_units
from actors.estimate import Passes
from actors.factorial_report import schedule_text
from actors.gate.factorial.schedule import ScheduleError
from actors.llm.endpoints import resolve_endpoints
from actors.logs import configure_logs
from actors.streams import json_text
from actors.summary import preflight_table
from actors.system import TWIN
from actors.tables import render
from protocol.settings import Config, Endpoint

__all__ = ["add_check_options", "add_check_parser", "check"]

DONE, USAGE, INTERRUPTED = 0, 2, 130


def add_check_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``check``: the same as ``bin/train --check``, with the options that it heeds."""
    parser = commands.add_parser(
        "check",
        prog="bin/trm check",
        help="look at all that a run needs, say what it would cost, and run nothing",
        description=(
            "Looks at the configuration, the data, the seed, the disk, the cache, the versions\n"
            "and every endpoint (one or two small calls for each role), a line each with what to\n"
            "do, then says which gains the run could see and what it would cost.\n"
            "Nothing is written. The same as bin/train --check."
        ),
        epilog=(
            "examples:\n"
            "  bin/trm check                               would the demo run here?\n"
            "  bin/trm check my.yaml                       would my run, and what would it cost?\n"
            "  bin/trm check my.yaml --json | jq .ready    the same as one object\n"
            "  bin/trm check --resume workspaces/my-001    would it go on, and what is left?\n\n"
            "exit codes: 0 ready, 2 something would stop the run"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_run_options(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    parser.set_defaults(run=check, aa=None)  # the one option of a run that a check refuses


def add_check_options(parser: argparse.ArgumentParser) -> None:
    """``--check`` and ``--json`` of ``bin/train``."""
    parser.add_argument(
        "--check",
        action="store_true",
        help="look at all that a run needs, say what it would cost, and run nothing",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="stdout for machines: a JSON line per event, first `launch`, last `done`; "
        "with --check one object",
    )


class _Report:
    """Takes the lines as they come; prints each at once, unless all are to be one object."""

    def __init__(self, *, quiet: bool) -> None:
        self.lines: list[Line] = []
        self._quiet = quiet
        self.plain = not _fancy()

    def add(self, *lines: Line) -> None:
        """Keep and print."""
        self.lines += lines
        if not self._quiet and lines:
            show([shown(line, plain=self.plain) for line in lines], colour=not self.plain)

    def table(self, table: Group) -> None:
        """Print a table between lines."""
        if not self._quiet:
            lines = render([table]).rstrip().split("\n")
            write("\n" + "\n".join(line.rstrip() for line in lines) + "\n\n")


def _fancy() -> bool:
    """Whether somebody looks who wants colours and can see a check mark."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return on_terminal() and not os.environ.get("NO_COLOR") and encoding == "utf8"


def check(arguments: argparse.Namespace, machine: Machine | None = None) -> int:
    """Run the command; returns the exit code: 0 all fine, 2 something would stop a run."""
    configure_logs(None, "critical", None)  # what is found is told below, once
    report = _Report(quiet=arguments.json)
    try:
        preview, material = _look(arguments, machine or Machine(), report)
    except KeyboardInterrupt:
        return INTERRUPTED
    stopped = stops(report.lines)
    if arguments.json:
        write(_json(report.lines, preview, material))
    else:
        _last_words(report)
    return USAGE if stopped else DONE


def _last_words(report: _Report) -> None:
    errors = sum(line.mark == "error" for line in report.lines)
    warnings = sum(line.mark == "warning" for line in report.lines)
    counted = f"{warnings} warning{'s' if warnings != 1 else ''}"
    if errors:
        these = "1 thing" if errors == 1 else f"{errors} things"
        write(f"\n{these} would stop the run, {counted}.\n")
    else:
        write(f"\nReady, {counted}. Nothing was written.\n")


def _json(lines: Sequence[Line], preview: Preview | None, material: Material | None) -> str:
    split = None if material is None else material.split
    told = {
        "ready": not stops(lines),
        "lines": lines,
        "gains": None if split is None else split.facts,
        "preview": preview,
    }
    return f"{json_text(told)}\n"


def _look(
    arguments: argparse.Namespace, machine: Machine, report: _Report
) -> tuple[Preview | None, Material | None]:
    """Everything, in the order in which it is told."""
    try:
        subject = subject_of(arguments)
    except ConfigError as error:
        report.add(*(fail("config", problem, "mend it") for problem in error.problems))
        report.add(*versions_lines(machine))
        return None, None
    config = subject.config
    report.add(*config_lines(subject))
    lines, material = look_at_data(config, subject.source, subject.workspace)
    report.add(*lines)
    if subject.workspace is not None:
        report.add(*resume_lines(subject, arguments.accept_change))
    report.add(target_line(subject.target, resumed=subject.workspace is not None))
    report.add(cache_line(config, machine.environ))
    report.add(*versions_lines(machine), files_line(config, machine.limit))
    heard, models = _endpoints(config, material, machine, report)
    dates = {name: found.date for name, found in models.items() if found.date is not None}
    report.add(clock_line(machine, dates))
    return _preview(subject, material, heard, machine, report), material


def _preview(
    subject: Subject,
    material: Material,
    heard: Sequence[Heard],
    machine: Machine,
    report: _Report,
) -> Preview | None:
    config, split = subject.config, material.split
    preview = preview_of(config, material, heard, subject.workspace, subject.done)
    if preview is None or split is None:
        told = "unknown: the data cannot be read"
        report.add(fail("expected", told, "mend what the lines above name"))
        return None
    report.add(
        disk_line(
            subject.target,
            preview.estimate.all_rollouts.most,
            preview.rates.search.prompt,
            machine.free,
        )
    )
    if config.gate.design == "factorial":
        left = None if subject.workspace is None else pairs_left(subject.workspace)
        if left is not None and left.decided:
            report.add(left.line)
            return preview
        report.add(*_schedule(config, material, split, preview, report))
        if left is not None:
            report.add(left.line)
        return preview
    report.add(*gain_lines(split))
    report.table(preflight_table(split.data, split.plan, split.power, config.trainer))
    report.add(*preview.lines(config))
    return preview


def _schedule(
    config: Config, material: Material, split: Split, preview: Preview, report: _Report
) -> list[Line]:
    """In the factorial design the schedule and the passes beside it are the estimate."""
    assert material.frozen is not None, "a split was described"
    trained = {work.task_type for work in split.plan.classes}
    units = make_units(q for q in material.frozen.diag if q.task_type in trained)
    calls, shape = preview.rates.calls_per_rollout, preview.shape
    passes = Passes(val=shape.val, test=shape.test, test_seed=shape.test_seed, wrong=shape.wrong)
    try:
        report.table(Group(schedule_text(config, split.data, units, calls, passes)))
    except ScheduleError as error:
        return [fail("schedule", str(error), "change gate.budget, or train more videos")]
    return [fine("schedule", "fixed; stands above, with the gain that it can resolve")]


# -- endpoints --------------------------------------------------------------------------


def _endpoints(
    config: Config, material: Material, machine: Machine, report: _Report
) -> tuple[list[Heard], Mapping[str, Models]]:
    """Ask every endpoint that a run would ask; tell what it says."""
    usable = []
    for endpoint in config.llm.endpoints:
        line = _unusable(config, endpoint, machine.environ)
        if line is None:
            usable.append(endpoint)
        else:
            report.add(line)
    try:
        with (
            TemporaryDirectory(prefix="trm-check-") as folder,
            while_waiting(_asking(config, usable)),
        ):
            heard, models = anyio.run(_ask, config, usable, material, Path(folder), machine.environ)
    except (OSError, LookupError) as error:  # no room for it, no templates, no general skill
        report.add(fail("endpoint", f"none could be asked: {error}", "mend what it names"))
        return [], {}
    for endpoint in usable:
        own = [one for one in heard if one.probe.endpoint.name == endpoint.name]
        report.add(*endpoint_lines(config, endpoint, models.get(endpoint.name), own))
        if not own:
            told = f"{endpoint.name}: the simulator is not asked before its data can be read"
            report.add(warn("endpoint", told, "mend what the lines above name"))
    if config.data.search != "bm25":
        report.add(_embedding(config, machine.environ))
    return heard, models


def _asking(config: Config, endpoints: Sequence[Endpoint]) -> str:
    these = "1 endpoint" if len(endpoints) == 1 else f"{len(endpoints)} endpoints"
    return f"asking {these} ({silence_s(config):g} s if one is silent) ..."


def _unusable(config: Config, endpoint: Endpoint, environ: Mapping[str, str]) -> Line | None:
    """Why it is not asked; None: it is."""
    try:
        resolve_endpoints([endpoint], environ, config.llm.concurrency)
    except ValueError as error:
        return fail("endpoint", str(error), f"export {endpoint.api_key_env}=...")
    if not roles_of(config, endpoint):
        told = f"{endpoint.name}: a run would not ask it ({', '.join(endpoint.roles)})"
        return fine("endpoint", told)
    return None


async def _ask(
    config: Config,
    endpoints: Sequence[Endpoint],
    material: Material,
    folder: Path,
    environ: Mapping[str, str],
) -> tuple[list[Heard], dict[str, Models]]:
    real = [endpoint for endpoint in endpoints if endpoint.base_url != TWIN]
    models = await list_models(real, environ)
    probes = {
        endpoint.name: wanted
        for endpoint in endpoints
        if (wanted := probes_of(config, endpoint, material))
    }
    return await ask_all(config, probes, material, folder), models


def _embedding(config: Config, environ: Mapping[str, str]) -> Line:
    try:
        return embedding_line(config, anyio.run(embed_once, config, environ))
    except (ValueError, OSError) as error:
        return fail("embedding", str(error), "mend the section embedding of the configuration")
