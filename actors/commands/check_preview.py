"""What a run would see and cost: the gains that can be resolved, and the estimate, as lines.

Sizes come from the frozen data, rates from the calls that the check made, or of a run that is
under way from its run.db; what nobody measured is a typical number and is named as such.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import msgspec

from actors.commands.check_calls import Heard
from actors.commands.check_data import Material
from actors.commands.check_line import Line, fine, warn
from actors.commands.check_seen import log_of
from actors.commands.splitting import Split
from actors.estimate import (
    CALLS_PER_ROLLOUT,
    GROWTH,
    OWN_S,
    SIMULATED_CALLS_PER_ROLLOUT,
    TYPICAL,
    Estimate,
    Range,
    Rates,
    RoleRate,
    RunShape,
    estimate,
)
from actors.gate.package_power import PackagePower
from actors.ledger.reader import open_reader
from actors.run_shape import run_shape
from actors.summary import seen_words
from actors.system import simulated_roles
from protocol.ledger import Where
from protocol.llm import ChatAnswer, Role
from protocol.rows import AttemptRow, OutcomeRow
from protocol.settings import Config

__all__ = ["Preview", "gain_lines", "preview_of", "rates_of", "shape_of"]

_ENOUGH = 20  # outcomes, from which on a run's own numbers are better than any other
_ROLES: tuple[Role, ...] = ("search", "judge", "evolve")


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """The estimate with what it rests on, in words."""

    estimate: Estimate
    shape: RunShape
    rates: Rates
    assumptions: tuple[str, ...]

    def lines(self, config: Config) -> list[Line]:
        """The estimate in lines."""
        return [*_cost_lines(config, self), fine("assumed", "; ".join(self.assumptions))]


def preview_of(
    config: Config, material: Material, heard: Sequence[Heard], workspace: Path | None, done: int
) -> Preview | None:
    """The run that is left after ``done`` epochs; None: its data could not be read.

    workspace: of a run that would go on.
    """
    if material.split is None:
        return None
    shape = shape_of(config, material, fresh=workspace is None, done=done)
    rates, assumptions = rates_of(config, heard, workspace)
    return Preview(
        estimate=estimate(shape, rates), shape=shape, rates=rates, assumptions=assumptions
    )


# -- gains ------------------------------------------------------------------------------


def gain_lines(split: Split) -> list[Line]:
    """Classes that nothing could be accepted in, and what val and test can resolve."""
    lines = [
        warn(
            "gains",
            f"{one.count.task_type}: nothing could be accepted on {one.ladder.n_units} units, "
            f"{one.ladder.n_wrong} of them wrong",
            "more videos of this class, or leave it: its steps cost and decide nothing",
        )
        for one in split.facts.classes
        if one.ladder is not None and not one.ladder.testable
    ]
    lines += [
        _package_line("val", split.facts.val),
        _package_line("test", split.facts.test),
    ]
    return lines


def _package_line(pool: str, power: PackagePower) -> Line:
    told = f"a whole package on {pool}, {power.n_questions} questions at {power.alpha:g}"
    found = f"{told}: {seen_words(power, pool)}"
    if pool == "val" and not power.n_questions:
        return warn("gains", found, "mend what `pools` above names")
    if power.gain_50 is None:
        return warn("gains", found, "split with more videos in this pool")
    return fine("gains", found)


# -- sizes ------------------------------------------------------------------------------


def shape_of(config: Config, material: Material, *, fresh: bool, done: int) -> RunShape:
    """The sizes of what is left. done: epochs that are whole."""
    split, frozen, package = material.split, material.frozen, material.package
    assert split is not None, "asked only where the data could be read"
    assert frozen is not None, "a split was described"
    diag = next(pool for pool in split.facts.pools if pool.pool == "diag")
    return run_shape(
        config,
        split.plan.classes,
        val=split.facts.val.n_questions,
        test=len(frozen.test),
        wrong=(diag.wrong or 0) / diag.questions if diag.questions else 0.0,
        serves=material.serves,
        n_prompts=1 + (0 if package is None else len(package.prompts.tools)),
        fresh=fresh,
        done=done,
    )


# -- rates ------------------------------------------------------------------------------


def rates_of(
    config: Config, heard: Sequence[Heard], workspace: Path | None
) -> tuple[Rates, tuple[str, ...]]:
    """What a call takes, and where that is known from."""
    known = None if workspace is None else _of_run(workspace / "run.db")
    rates = {role: _rate(config, role, heard) for role in _ROLES}
    assumptions = []
    twin = "search" in simulated_roles(config)
    calls, growth = (SIMULATED_CALLS_PER_ROLLOUT if twin else CALLS_PER_ROLLOUT), GROWTH
    if twin:
        growth = GROWTH / 2.0
    if known is not None:
        calls, growth = known.calls_per_rollout, 0.0
        for role, rate in known.roles.items():
            rates[role] = msgspec.structs.replace(
                rates[role],
                prompt=rate.prompt,
                completion=rate.completion,
                seconds=rate.seconds,
                measured=True,
            )
        assumptions.append(f"{calls:.1f} calls per rollout and the tokens of this run so far")
    else:
        whose = "as the simulator makes in the demo" if twin else "typical"
        assumptions.append(f"{calls:g} calls per rollout ({whose}), {growth:g} tokens more in each")
    guessed = [role for role in _ROLES if not rates[role].measured]
    if guessed:
        named = ", ".join(
            f"{role} {rates[role].prompt:g} + {rates[role].completion:g}" for role in guessed
        )
        assumptions.append(f"typical tokens per call, not measured: {named}")
    if rates["search"].seconds is not None:
        assumptions.append(
            f"{_brief(rates['search'].seconds)} per call of the agent, as if nobody else asked: a "
            f"server that slows down under load takes longer; {_brief(OWN_S)} of this program's own"
        )
    assumptions.append("no failed tries, no end by patience")
    made = Rates(
        search=rates["search"],
        judge=rates["judge"],
        evolve=rates["evolve"],
        calls_per_rollout=calls,
        concurrency=_places(config),
        growth=growth,
    )
    return made, tuple(assumptions)


def _places(config: Config) -> int:
    """Rollouts that can be under way at once."""
    ceilings = [
        endpoint.concurrency or config.llm.concurrency
        for endpoint in config.llm.endpoints
        if "search" in endpoint.roles
    ]
    return min(config.agent.concurrency, sum(ceilings))


def _rate(config: Config, role: Role, heard: Sequence[Heard]) -> RoleRate:
    """The mean of a role's real calls, and of its endpoints' prices; typical where none came."""
    answers = [
        one.reply
        for one in heard
        if one.probe.role == role
        and one.probe.kind == "role"
        and one.probe.real
        and isinstance(one.reply, ChatAnswer)
    ]
    paced = [
        one.reply.seconds
        for one in heard
        if one.probe.role == role and one.probe.kind == "pace" and isinstance(one.reply, ChatAnswer)
    ]
    counted = [reply.usage for reply in answers if reply.usage.prompt_tokens]
    endpoints = [endpoint for endpoint in config.llm.endpoints if role in endpoint.roles]
    prompts = [e.usd_per_m_prompt for e in endpoints if e.usd_per_m_prompt is not None]
    completions = [e.usd_per_m_completion for e in endpoints if e.usd_per_m_completion is not None]
    priced = endpoints and len(prompts) == len(completions) == len(endpoints)
    rate = TYPICAL[role]
    return RoleRate(
        prompt=_mean([usage.prompt_tokens for usage in counted], rate.prompt),
        completion=_mean([usage.completion_tokens for usage in counted], rate.completion),
        seconds=_mean(paced or [reply.seconds for reply in answers], 0.0) if answers else None,
        usd_per_m_prompt=_mean(prompts, 0.0) if priced else None,
        usd_per_m_completion=_mean(completions, 0.0) if priced else None,
        measured=bool(counted),
    )


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


class _Known(msgspec.Struct, frozen=True):
    calls_per_rollout: float
    roles: dict[Role, RoleRate]


def _of_run(database: Path) -> _Known | None:
    """A run's own numbers; None: it has too few, or none that can be read."""
    try:
        with open_reader(database, at_rest=not log_of(database).exists()) as reader:
            rollouts = len(reader.rows(OutcomeRow))
            rows = reader.rows(AttemptRow, Where(column="outcome", value="ok"))
    except (sqlite3.Error, OSError):
        return None
    mine: dict[Role, list[AttemptRow]] = {
        role: [row for row in rows if row.role == role] for role in _ROLES
    }
    if rollouts < _ENOUGH or not mine["search"]:
        return None
    roles = {
        role: RoleRate(
            prompt=_mean([row.prompt_tokens for row in calls], 0.0),
            completion=_mean([row.completion_tokens for row in calls], 0.0),
            seconds=_mean([row.seconds for row in calls], 0.0),
        )
        for role, calls in mine.items()
        if calls
    }
    return _Known(len(mine["search"]) / rollouts, roles)


# -- the estimate in words --------------------------------------------------------------


def _cost_lines(config: Config, preview: Preview) -> list[Line]:
    made, shape = preview.estimate, preview.shape
    if shape.epochs == 0:
        return [fine("expected", "no epoch is left; --set trainer.epochs=N trains further")]
    epochs = "1 epoch" if shape.epochs == 1 else f"{shape.epochs} epochs"
    phases = ", ".join(f"{name} {value.expected:,.0f}" for name, value in made.rollouts.items())
    lines = [
        fine(
            "expected",
            f"{epochs}, {_both(made.all_rollouts)} rollouts ({phases})",
        ),
        fine("expected", f"{_both(made.all_calls)} calls, {_tokens(made.tokens)} tokens"),
        *_money(made),
        *_time(made),
    ]
    return [*lines, *_limit_lines(config, made)]


def _both(value: Range) -> str:
    return f"{value.expected:,.0f} (at most {value.most:,.0f})"


def _tokens(value: Range) -> str:
    return f"{_short(value.expected)} (at most {_short(value.most)})"


def _short(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f} {letter}"
    return f"{number:.0f}"


def _money(made: Estimate) -> list[Line]:
    if made.usd is None:
        return [fine("expected", "no price: usd_per_m_prompt and usd_per_m_completion are not set")]
    return [fine("expected", f"${made.usd.expected:,.2f} (at most ${made.usd.most:,.2f})")]


def _time(made: Estimate) -> list[Line]:
    if made.hours is None:
        return [fine("expected", "hours unknown: the agent's endpoints gave no answer to measure")]
    low, high = made.hours.expected, made.hours.most
    return [fine("expected", f"about {_span(low)} ({_span(high)} with the most calls)")]


def _span(hours: float) -> str:
    if hours >= 1:
        return f"{hours:.1f} h"
    return f"{hours * 60:.1f} min" if hours * 60 >= 1.5 else f"{hours * 3600:.0f} s"


def _brief(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{seconds * 1000:.0f} ms"


def _limit_lines(config: Config, made: Estimate) -> list[Line]:
    """Limits that the run would meet: it stops there in order, and can be resumed."""
    limits = config.limits
    pairs: list[tuple[str, float | None, Range | None]] = [
        ("max_calls", limits.max_calls, made.all_calls),
        ("max_tokens", limits.max_tokens, made.tokens),
        ("max_usd", limits.max_usd, made.usd),
    ]
    lines = []
    for name, limit, value in pairs:
        if limit is not None and value is not None and limit < value.expected:
            told = f"limits.{name} {limit:g} is below the {value.expected:,.0f} that are expected"
            lines.append(warn("limits", told, "raise it; the run stops there and can be resumed"))
    return lines
