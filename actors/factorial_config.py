"""What the factorial gate asks of a configuration. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from protocol.settings import Config

__all__ = ["FIXED", "factorial_problems", "fixed_changes", "fixed_problems", "subject_keys"]

Changed = tuple[str, object, object]
"""Key, old value, new value, as of ``changed_keys``."""

FIXED = (
    "run.seed",
    "trainer.epochs",
    "gate.design",
    "gate.profile",
    "gate.budget",
    "gate.fold",
    "gate.q",
    "gate.cap",
    "gate.drop_harm",
)
"""What the schedule and the guarantee rest on: fixed before the first draw (T7)."""

_OWN = frozenset(
    f"gate.{name}" for name in ("design", "q", "cap", "fold", "drop_harm", "candidates", "budget")
)


def factorial_problems(config: Config) -> list[str]:
    """What does not go with ``gate.design: factorial``; nothing with another design."""
    if config.gate.design != "factorial":
        return []
    problems = []
    if config.gate.profile == "audit":
        problems.append(
            "gate.profile: audit draws every accept twice, which gate.design: factorial does not; "
            "take balanced or growth"
        )
    if config.trainer.slow_update:
        problems.append(
            "trainer.slow_update: must be false with gate.design: factorial; it would rewrite the "
            "documents that undecided edits refer to (momentum rules are edits of their own there)"
        )
    if config.trainer.max_batches is not None:
        problems.append(
            "trainer.max_batches: must be null with gate.design: factorial, whose draws "
            "gate.budget and gate.fold fix"
        )
    return problems


def subject_keys(
    config: Config, leaves: Mapping[str, object], free: tuple[str, ...]
) -> dict[str, object]:
    """The settings that decide what a run finds, out of all of them.

    free: keys, or how they begin, that change pace or length only. The number of epochs is not
    among them where it makes the schedule; what the factorial gate alone reads does not count in
    a run with the ladder.
    """
    factorial = config.gate.design == "factorial"
    counted = {key: value for key, value in leaves.items() if not key.startswith(free)}
    if not factorial:
        return {key: value for key, value in counted.items() if key not in _OWN}
    return counted | {"trainer.epochs": leaves["trainer.epochs"]}


def fixed_changes(before: Config, after: Config, changed: Sequence[Changed]) -> list[str]:
    """Changes that nobody may accept, a line each. before: the run's own configuration."""
    if "factorial" not in (before.gate.design, after.gate.design):
        return []
    return [
        f"{key}: {old!r} -> {new!r} cannot be accepted: what the factorial gate draws is fixed "
        "before the first draw"
        for key, old, new in changed
        if key in FIXED
    ]


def fixed_problems(before: Config, after: Config, changed: Sequence[Changed]) -> list[str]:
    """The same with what to do; empty: there is none."""
    problems = fixed_changes(before, after, changed)
    return [*problems, "Take it back, or begin a fresh run"] if problems else []
