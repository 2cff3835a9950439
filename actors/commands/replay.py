"""``bin/trm replay``: what another rule would have made of a run's gate decisions."""

from __future__ import annotations

import argparse
from pathlib import Path

from actors.commands.seed_options import DONE, FAILED, USAGE, OptionError, note, write

__all__ = ["add_replay_parser", "replay"]

_DESCRIPTION = """\
Decides every gate decision of a run again, by other rules, from the answers that run.db holds. It
costs nothing: no call is made and nothing is written.

rules (--rule may be given several times; `all` is every one of these):
  always         takes every candidate
  strict         takes what has more right answers on the whole ladder than the baseline
  minibatch:N    the same on the first N questions of the ladder; a baseline without a mistake on
                 them is passed over
  mcnemar        one exact one-sided McNemar test on the whole ladder, at the class's level
  gate[:PROFILE] the gate, with the run's own profile or balanced, growth, audit

Each decision is taken by itself, on the skill that stood when it was made: a rule that accepts
other edits would have come to other skills, and to other candidates. Where a rule needs answers
that the gate, having stopped, did not ask for, its verdict is the same for all of them or else
`unknown`. strict, minibatch and mcnemar read the baseline's first draw only."""

_EXAMPLES = """\
examples:
  bin/trm replay workspaces/my-001
  bin/trm replay workspaces/my-001 --rule strict --rule gate:growth --decisions
  bin/trm replay workspaces/my-001 --json | jq '.rules[] | {rule, accepted, false_accepts}'

exit codes: 0 done, 1 the gate comes to another verdict than the run has stored, 2 there is no such
workspace, or nothing in it to decide again"""


def add_replay_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``replay`` and its options."""
    parser = commands.add_parser(
        "replay",
        prog="bin/trm replay",
        help="decide a run's stored tests again, by other rules",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("workspace", type=Path, metavar="WORKSPACE", help="what a run made")
    parser.add_argument(
        "--rule",
        action="append",
        metavar="RULE",
        dest="rules",
        help="one of the above; may be given several times (default: all)",
    )
    parser.add_argument("--decisions", action="store_true", help="also every decision on a line")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(run=replay)


def replay(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from actors.config import ConfigError
    from actors.dataset.errors import DataError
    from actors.twin.catalog import LoadError
    from actors.workspace.errors import WorkspaceError

    try:
        return _replay(arguments)
    except (OptionError, ConfigError, DataError, LoadError, WorkspaceError, OSError) as error:
        note(f"bin/trm replay: {error}")
        return USAGE


def _replay(arguments: argparse.Namespace) -> int:
    import msgspec

    from actors.commands.console import show
    from actors.commands.replay_reading import stored_run
    from actors.commands.replay_report import tables
    from actors.commands.replay_rules import DEFAULT_RULES, parse_rule
    from actors.commands.replay_tally import replayed
    from actors.commands.workspace_view import find_workspace
    from actors.logs import configure_logs

    configure_logs(None, "critical", None)  # what is found is told below, once
    workspace = find_workspace(arguments.workspace)
    found = stored_run(workspace)
    names: list[str] = arguments.rules or ["all"]
    chosen = [each for name in names for each in (DEFAULT_RULES if name == "all" else (name,))]
    try:
        rules = [parse_rule(name, found.config.gate) for name in dict.fromkeys(chosen)]
    except ValueError as error:
        raise OptionError(str(error)) from error
    report = replayed(workspace, found, rules)
    if arguments.json:
        write(msgspec.json.encode(report).decode() + "\n")
    else:
        show(tables(report, decisions=arguments.decisions))
    return DONE if report.same == report.compared else FAILED
