"""The undisturbed run, and what another one may differ in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.system.runs import SMALL, result_of, run_to_end, settings

__all__ = ["DESIGNS", "FACTORIAL", "TINY", "differing", "undisturbed"]

TINY = (*SMALL, "trainer.epochs=1")
"""Still every kind of durable action: a step, a slow update, a checkpoint, a manifest."""

FACTORIAL = (
    "run.seed=5",  # of the first few the one in which a later edit joins a group that is adopted
    "gate.design=factorial",
    "gate.budget=160",
    "trainer.slow_update=false",
    "trainer.epochs=2",
    "trainer.run_holdout_eval=false",
    "data.trainable_min_units=30",
    "runtime.backoff_s=0.01",
)
"""The same two classes: 15 edits, among them notes, a rule and edits of the prompts; 63 pairs
in three phases, drops, and adoptions."""

DESIGNS = {"ladder": SMALL, "factorial": FACTORIAL}
"""Settings of a small run, by ``gate.design``."""

_OF_SETTINGS = ("run_id", "settings_sha256")


def undisturbed(workspace: Path, assignments: tuple[str, ...]) -> dict[str, object]:
    """The result of a run that nothing happens to."""
    run_to_end(*settings(assignments), "--workspace", str(workspace))
    return result_of(workspace)


def differing(
    found: Mapping[str, object], expected: Mapping[str, object], *, other_endpoints: bool = False
) -> list[str]:
    """Tables and files that are not the same; empty: all are.

    other_endpoints: the two runs were answered at other addresses, which their fingerprint tells.
    """
    return [
        f"{key} differs"
        for key in sorted(expected.keys() | found.keys())
        if _same(found.get(key), other_endpoints) != _same(expected.get(key), other_endpoints)
    ]


def _same(value: object, other_endpoints: bool) -> object:
    if other_endpoints and isinstance(value, dict):
        return {key: part for key, part in value.items() if key not in _OF_SETTINGS}
    return value
