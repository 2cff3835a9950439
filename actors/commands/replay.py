"""``bin/trm replay``: what another rule would have made of a run, and of a planted world."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from actors.commands.seed_options import DONE, FAILED, USAGE, OptionError, note, write

if TYPE_CHECKING:
    from actors.commands.replay_reading import StoredRun
    from protocol.settings import Config

__all__ = ["add_replay_parser", "replay"]

_DESCRIPTION = """\
Decides every gate decision of a run again, by other rules, from the answers that run.db holds. It
costs nothing: no call is made and nothing is written.

rules (--rule may be given several times; `all` is a choice of them):
  always         takes every candidate
  strict         takes what has more right answers on the whole ladder than the baseline
  minibatch:N    the same on the first N questions of the ladder; a baseline without a mistake on
                 them is passed over
  mcnemar        one exact one-sided McNemar test on the whole ladder, at the class's level
  gate[:PROFILE] the gate, with the run's own profile or balanced, growth, audit

Each decision is taken by itself, on the skill that stood when it was made: a rule that accepts
other edits would have come to other skills, and to other candidates. Where a rule needs answers
that the gate, having stopped, did not ask for, its verdict is the same for all of them or else
`unknown`. strict, minibatch and mcnemar read the baseline's first draw only.

rules for a run with gate.design: factorial, whose edits are decided on its pairs:
  always         takes every edit
  strict         takes what won more pairs than it lost
  one-sided:A    takes what an exact one-sided test of its own finds at level A
  factorial[:KEY=VALUE,...]
                 the run's decision, or with another q, cap or drop_harm: factorial:q=0.2,cap=0.05
Of alternatives to one passage every rule takes one, that with the smallest p. The pairs were drawn
with the run's own edits switched off: what another drop_harm would have kept has no answers after
that, and is `unknown` where they matter.

--planted WORLD reads no run. It trains in a world whose truth is known, once per design, all
designs with the same questions, edits and number of evaluations: the ladder, accept-if-better
(strict), and the factorial gate at q .15 and .20.
  study          300 questions in 12 classes, 144 edits: 60 % useless, 20 % harmful
  twin           the demo's questions and its simulator's own lessons, traps and idle lines"""

_EXAMPLES = """\
examples:
  bin/trm replay workspaces/my-001
  bin/trm replay workspaces/my-001 --rule strict --rule gate:growth --decisions
  bin/trm replay workspaces/my-001 --json | jq '.rules[] | {rule, accepted, false_accepts}'
  bin/trm replay workspaces/my-002 --rule factorial:q=0.2 --rule one-sided:0.05 --decisions
  bin/trm replay --planted study
  bin/trm replay --planted twin --runs 100 --json

exit codes: 0 done, 1 the gate comes to another verdict than the run has stored, 2 there is no such
workspace, nothing in it to decide again, or an option cannot be used"""

_RUNS, _FIRST = 20, 1
_MOST_EVALUATIONS = 1_000_000
"""Of a design in one world: hundreds of times what it takes to test every edit, and a minute."""


def add_replay_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``replay`` and its options."""
    parser = commands.add_parser(
        "replay",
        prog="bin/trm replay",
        help="decide a run's stored tests again, by other rules; compare designs",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "workspace", type=Path, nargs="?", metavar="WORKSPACE", help="what a run made"
    )
    parser.add_argument(
        "--rule",
        action="append",
        metavar="RULE",
        dest="rules",
        help="one of the above; may be given several times (default: all)",
    )
    parser.add_argument("--decisions", action="store_true", help="also every decision on a line")
    parser.add_argument(
        "--planted", choices=("study", "twin"), help="no workspace: compare designs in this world"
    )
    parser.add_argument(
        "--runs",
        type=int,
        metavar="N",
        help=f"with --planted: worlds (default: {_RUNS}, about a minute)",
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help=f"with --planted: of the first (default: {_FIRST})"
    )
    parser.add_argument(
        "--evaluations",
        type=int,
        metavar="N",
        help=f"with --planted: answers that a design may draw, at most {_MOST_EVALUATIONS} "
        "(default: what strict needs to test every edit)",
    )
    parser.add_argument(
        "--profile",
        action="append",
        choices=("balanced", "growth", "audit"),
        dest="profiles",
        help="with --planted: of the ladder; may be given several times (default: balanced)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(run=replay)


def replay(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from actors.config import ConfigError
    from actors.dataset.errors import DataError
    from actors.twin.catalog import LoadError
    from actors.workspace.errors import WorkspaceError

    try:
        _check(arguments)
        if arguments.planted is not None:
            return _planted(arguments)
        return _replay(arguments)
    except (OptionError, ConfigError, DataError, LoadError, WorkspaceError, OSError) as error:
        note(f"bin/trm replay: {error}")
        return USAGE


def _check(arguments: argparse.Namespace) -> None:
    """Options that do not go together. Raises OptionError."""
    own = ("runs", "seed", "evaluations", "profiles")
    if arguments.planted is None:
        if arguments.workspace is None:
            raise OptionError("name a WORKSPACE to replay, or a world: --planted study")
        for name in own:
            if getattr(arguments, name) is not None:
                raise OptionError(
                    f"--{name.removesuffix('s') if name == 'profiles' else name}: goes with "
                    "--planted; a workspace is replayed as it is"
                )
        return
    if arguments.workspace is not None:
        raise OptionError(
            f"{arguments.workspace}: --planted reads no workspace; leave one of the two out"
        )
    if arguments.rules or arguments.decisions:
        raise OptionError("--rule, --decisions: are for a WORKSPACE; leave them or --planted out")
    if arguments.runs is not None and arguments.runs < 2:
        raise OptionError(f"--runs {arguments.runs}: at least 2, or there is no interval to tell")
    if arguments.seed is not None and arguments.seed < 0:
        raise OptionError(f"--seed {arguments.seed}: must be 0 or more")
    if arguments.evaluations is not None and arguments.evaluations < 1:
        raise OptionError(f"--evaluations {arguments.evaluations}: must be positive")
    if arguments.evaluations is not None and arguments.evaluations > _MOST_EVALUATIONS:
        raise OptionError(
            f"--evaluations {arguments.evaluations}: at most {_MOST_EVALUATIONS}; a few thousand "
            "test every edit (leave it out for what strict needs)"
        )


def _planted(arguments: argparse.Namespace) -> int:
    import msgspec

    from actors.commands.console import show
    from actors.commands.replay_planted import PlantedRequest, compared, comparison_tables

    found = compared(
        PlantedRequest(
            world=arguments.planted,
            runs=_RUNS if arguments.runs is None else arguments.runs,
            first=_FIRST if arguments.seed is None else arguments.seed,
            evaluations=arguments.evaluations,
            profiles=tuple(dict.fromkeys(arguments.profiles or ("balanced",))),
        )
    )
    if arguments.json:
        write(msgspec.json.encode(found).decode() + "\n")
    else:
        show(comparison_tables(found))
    return DONE


def _replay(arguments: argparse.Namespace) -> int:
    from actors.commands.workspace_view import find_workspace
    from actors.config import load_config
    from actors.logs import configure_logs

    configure_logs(None, "critical", None)  # what is found is told below, once
    workspace = find_workspace(arguments.workspace, "bin/trm replay")
    config = load_config(workspace / "config.yaml")
    if config.gate.design == "factorial":
        return _factorial(arguments, workspace, config)
    return _ladder(arguments, workspace)


def _ladder(arguments: argparse.Namespace, workspace: Path) -> int:
    import msgspec

    from actors.commands.console import show
    from actors.commands.replay_reading import stored_run
    from actors.commands.replay_report import tables
    from actors.commands.replay_rules import DEFAULT_RULES, parse_rule
    from actors.commands.replay_tally import replayed

    found: StoredRun = stored_run(workspace)
    try:
        names = _named(arguments, DEFAULT_RULES)
        rules = [parse_rule(name, found.config.gate) for name in names]
    except ValueError as error:
        raise OptionError(str(error)) from error
    report = replayed(workspace, found, rules)
    if arguments.json:
        write(msgspec.json.encode(report).decode() + "\n")
    else:
        show(tables(report, decisions=arguments.decisions))
    return DONE if report.same == report.compared else FAILED


def _factorial(arguments: argparse.Namespace, workspace: Path, config: Config) -> int:
    import msgspec

    from actors.commands.console import show
    from actors.commands.replay_factorial import factorial_replay, stored_factorial
    from actors.commands.replay_factorial_report import factorial_tables
    from actors.commands.replay_factorial_rules import DEFAULT_RULES, parse_factorial_rule

    run = stored_factorial(workspace, config)
    try:
        names = _named(arguments, DEFAULT_RULES)
        rules = [parse_factorial_rule(name, run.own) for name in names]
    except ValueError as error:
        raise OptionError(str(error)) from error
    report = factorial_replay(workspace, run, rules)
    if arguments.json:
        write(msgspec.json.encode(report).decode() + "\n")
    else:
        show(factorial_tables(report, decisions=arguments.decisions))
    return DONE if not report.differing else FAILED


def _named(arguments: argparse.Namespace, default: tuple[str, ...]) -> tuple[str, ...]:
    """The rules that were asked for, each once, ``all`` unfolded."""
    names: list[str] = arguments.rules or ["all"]
    chosen = [each for name in names for each in (default if name == "all" else (name,))]
    return tuple(dict.fromkeys(chosen))
