"""A run's state, cost and trouble, counted from its rows."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from actors.commands.html.story import Cost, Diagnosed, Endpoint, Run, Trouble
from actors.commands.html.words import count, verb
from actors.commands.level_words import level_words
from actors.gate.levels import q_of
from actors.ledger.reader import Reader
from actors.places import as_called
from actors.workspace.lock import lock_holder
from protocol.documents import Package
from protocol.ledger import Where
from protocol.rows import (
    AttemptRow,
    DecisionRow,
    DiagnosisRow,
    EditRow,
    EpochRow,
    EvaluationRow,
    OutcomeRow,
)
from protocol.seed import SeedInfo
from protocol.settings import Config, GateSettings
from protocol.workspace import Manifest

__all__ = ["attempts_of", "cost_of", "diagnosed_of", "run_of", "state_of", "trouble_of"]

ROLES = {"search": "agent", "judge": "judge", "evolve": "editor", "vision": "vision"}
_EMBED = "embed"
_TWIN = "twin"

Attempts = Mapping[str, Sequence[AttemptRow]]
"""By role."""

State = Literal["empty", "running", "stopped", "ended"]


def run_of(
    workspace: Path,
    reader: Reader | None,
    manifest: Manifest,
    config: Config,
    info: SeedInfo,
    attempts: Attempts,
) -> Run:
    """What was trained with what, and how far it came."""
    epochs = [] if reader is None else reader.rows(EpochRow)
    evaluated = [] if reader is None else reader.rows(EvaluationRow)
    alphas = [] if reader is None else [row.alpha for row in reader.rows(DecisionRow)]
    held = lock_holder(workspace)
    began, ended = _times(attempts)
    state, why = state_of(
        epochs,
        config,
        begun=bool(evaluated or began),
        process=None if held is None else held.pid or 0,
    )
    return Run(
        run_id=manifest.run_id,
        workspace=str(workspace),
        state=state,
        why=why,
        seed_name=manifest.seed_name,
        seed=Package(skills=info.skills_version, prompts=info.prompts_version),
        current=manifest.current,
        best=manifest.best_hard,
        best_mixed=manifest.best_mixed,
        epoch=max((row.epoch for row in epochs), default=0),
        planned_epochs=config.trainer.epochs,
        models=_models(config),
        facts=_facts(manifest, config, info, alphas),
        changes=tuple(map(str, manifest.changes)),
        oracle=config.agent.skill_routing == "oracle",
        began=began,
        ended=ended,
    )


def state_of(
    epochs: Sequence[EpochRow], config: Config, *, begun: bool, process: int | None
) -> tuple[State, str]:
    """Where the run stands, in a word and in a sentence.

    begun: anything was recorded. process: the id of the one that runs on it, 0 if it is not known,
    None without one.
    """
    last = max(epochs, key=lambda row: row.epoch, default=None)
    done = 0 if last is None else last.epoch
    planned = config.trainer.epochs
    if process is not None:
        return (
            "running",
            f"Under way: {done} of {count(planned, 'epoch')} {verb(done, 'is', 'are')} whole.",
        )
    if not begun:
        return "empty", "This run has not begun: nothing was recorded yet."
    if done >= planned:
        return (
            "ended",
            f"All {planned} epochs are done." if planned > 1 else "Its one epoch is done.",
        )
    patience = config.trainer.early_stop_patience
    patient = config.gate.design == "factorial"  # it adopts nothing before its last epoch
    if not patient and last is not None and last.epochs_since_best_improved >= patience:
        return (
            "ended",
            f"Ended after epoch {done}: {count(patience, 'epoch')} without a better package.",
        )
    return "stopped", as_called(
        f"Stopped after {done} of {count(planned, 'whole epoch')}; bin/train --resume goes on "
        "with it."
    )


def _times(attempts: Attempts) -> tuple[str, str]:
    """The first and the last call, UTC."""
    stamps = [row.started for rows in attempts.values() for row in rows]
    return min(stamps, default=""), max(stamps, default="")


def attempts_of(reader: Reader | None) -> Attempts:
    """Every try at an endpoint, by role."""
    if reader is None:
        return {}
    return {
        role: reader.rows(AttemptRow, Where(column="role", value=role)) for role in (*ROLES, _EMBED)
    }


def _models(config: Config) -> tuple[tuple[str, str, bool], ...]:
    """Who played which role; vision only where the agent may see."""
    found: list[tuple[str, str, bool]] = []
    for role, name in ROLES.items():
        if role == "vision" and config.agent.vision != "describe":
            continue
        serving = [endpoint for endpoint in config.llm.endpoints if role in endpoint.roles]
        found += [(name, endpoint.model, endpoint.base_url == _TWIN) for endpoint in serving]
    return tuple(dict.fromkeys(found))


def _facts(
    manifest: Manifest, config: Config, info: SeedInfo, alphas: Sequence[float]
) -> tuple[tuple[str, str], ...]:
    return (
        ("run", manifest.run_id),
        ("random seed", str(config.run.seed)),
        ("seed", f"{info.name}, skills/{info.skills_version}, prompts/{info.prompts_version}"),
        ("baseline", info.baseline_run_id),
        (
            "agent",
            f"at most {count(config.agent.max_steps, 'step')}, {config.agent.tool_calls} tool "
            f"calls, search {config.data.search}, vision {config.agent.vision}",
        ),
        ("skill routing", config.agent.skill_routing),
        ("gate", _gate(config.gate, alphas, changed=bool(manifest.changes))),
        ("questions", f"SHA-256 {info.dataset_fingerprint}"),
        ("split", f"SHA-256 {info.pools_sha256}"),
        ("settings", f"SHA-256 {manifest.settings_sha256}"),
        ("trees", f"SHA-256 {manifest.trees_sha256}"),
    )


def _gate(gate: GateSettings, alphas: Sequence[float], *, changed: bool) -> str:
    if gate.design == "factorial":
        return (
            f"factorial, q {float(q_of(gate)):g}, cap {gate.cap:g}, fold {gate.fold:g}, drop_harm "
            f"{gate.drop_harm:g}, {count(gate.candidates, 'edit')} per class and epoch, "
            f"budget {gate.budget}"
        )
    return level_words(gate, alphas, changed=changed)


# -- cost -------------------------------------------------------------------------------


def cost_of(attempts: Attempts) -> Cost:
    """By role, those that made no call left out."""
    told = [(name, attempts.get(role, ())) for role, name in ROLES.items()]
    embedded = attempts.get(_EMBED, ())
    return Cost(
        roles=tuple(_endpoint(name, rows) for name, rows in told if rows),
        embeds=_endpoint("embedding", embedded) if embedded else None,
    )


def _endpoint(role: str, rows: Sequence[AttemptRow]) -> Endpoint:
    outcomes = Counter(row.outcome for row in rows)
    cached, answered = outcomes.pop("cached", 0), outcomes.pop("ok", 0)
    priced = [row.usd for row in rows if row.usd is not None]
    waits = [row.first_token_s for row in rows if row.first_token_s is not None]
    return Endpoint(
        role=role,
        endpoints=tuple(sorted({row.endpoint for row in rows if row.outcome != "cached"})),
        answered=answered,
        cached=cached,
        failed=dict(sorted(outcomes.items())),
        prompt_tokens=sum(row.prompt_tokens for row in rows),
        completion_tokens=sum(row.completion_tokens for row in rows),
        cached_tokens=sum(row.cached_tokens for row in rows),
        usd=sum(priced) if priced else None,
        unpriced=sum(row.usd is None and row.outcome != "cached" for row in rows),
        first_token_s=statistics.median(waits) if waits else None,
    )


# -- trouble ----------------------------------------------------------------------------

_AGENT = {
    "no answer was given": lambda row: row.stop == "no_answer",
    "the reply was never readable": lambda row: row.stop == "parse_error",
    "the budget ended without an answer": lambda row: row.stop == "budget",
    "forced to answer: steps": lambda row: row.forced_by == "steps",
    "forced to answer: tokens": lambda row: row.forced_by == "tokens",
    "forced to answer: time": lambda row: row.forced_by == "time",
    "forced to answer: context": lambda row: row.forced_by == "context",
    "a wrong or refused call": lambda row: row.bad_calls > 0,
    "a reply that was no action": lambda row: row.unreadable > 0,
    "the same call twice": lambda row: row.repeated > 0,
    "observations left out for want of room": lambda row: row.dropped > 0,
}


def trouble_of(reader: Reader | None, outcomes: Sequence[OutcomeRow]) -> Trouble:
    """What went wrong. agent: answers in which a thing happened, whether right or wrong."""
    answered = [row for row in outcomes if row.outcome != "missing"]
    missing = Counter(row.missing_kind or "unknown" for row in outcomes if row.outcome == "missing")
    agent = {name: sum(map(holds, answered)) for name, holds in _AGENT.items()}
    edits = Counter(row.status for row in ([] if reader is None else reader.rows(EditRow)))
    return Trouble(
        answered=len(answered),
        missing=dict(missing.most_common()),
        agent={name: number for name, number in agent.items() if number},
        edits={name: number for name, number in edits.most_common() if name != "applied"},
    )


def diagnosed_of(rows: Sequence[DiagnosisRow]) -> tuple[Diagnosed, ...]:
    """How often each way through the waterfall was taken."""
    counted = Counter((row.error_type, row.subtype or "", _cause(row)) for row in rows)
    return tuple(
        Diagnosed(error_type=kind, subtype=subtype, cause=cause, number=number)
        for (kind, subtype, cause), number in sorted(counted.items())
    )


def _cause(row: DiagnosisRow) -> str:
    """``silent`` where the diagnosis says nothing: no reply, or none that can be used."""
    return "silent" if row.cause is None or row.degraded else row.cause
