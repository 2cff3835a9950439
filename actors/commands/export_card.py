"""``CARD.md``: what a package is, how it was trained, how sure its gains are. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from actors.commands.blame_report import Origin, origin_of
from actors.commands.export_parts import Gain, Published
from actors.commands.level_words import level_words
from actors.commands.lineage import edit_key
from actors.curves import bound_lines
from actors.factorial_view import void_words
from actors.gate.levels import q_of
from actors.trainer.score import wilson
from protocol.settings import Config

__all__ = ["card"]

_TWIN = "twin"
_LET_IN = ("accept", "adopted", "kept")
_ROLES = (("search", "agent"), ("judge", "judge"), ("evolve", "editor"), ("vision", "vision"))
"""Roles and what people call them; nobody sees for the agent unless ``agent.vision`` says so."""


def card(made: Published, changed: Sequence[str], *, plain: bool, let_pass: int) -> str:
    """The card.

    changed: what the export changed in the documents, a line each. let_pass: quotations of the
    seed's own text that were let pass by name.
    """
    parts = [
        f"# {made.manifest.run_id}: trained documents",
        _what(made),
        "## How they were trained",
        _training(made),
        "## Gains over the seed's documents",
        _gains(made),
        "## Edits and their verdicts",
        _edits(made),
        "## Known limits",
        _limits(made),
        "## Data and licence",
        _licence(made, let_pass),
        "## Files",
        _files(changed, plain=plain),
    ]
    return "\n\n".join(parts) + "\n"


def _what(made: Published) -> str:
    known = f" ({' and '.join(made.best)} of its run)" if made.best else ""
    void = ""
    if made.together is not None and made.together.void:
        void = "**" + void_words(made.together.run).replace("\n", "** ") + "\n\n"
    return (
        f"{void}Documents that steer an agent which answers multiple-choice questions about a "
        "video by looking into a tree of notes: a strategy per task type (`skills/`), a system "
        "prompt and tool prompts (`prompts/`). They were trained, not written.\n\n"
        f"Package: {made.package}"
        f"{known}."
    )


def _training(made: Published) -> str:
    config, seed = made.config, made.seed
    rows = [
        ("run", made.manifest.run_id),
        ("epochs", str(len(made.epochs))),
        ("random seed", str(config.run.seed)),
        *((f"model, {name}", models) for role, name in _ROLES if (models := _models(config, role))),
        (
            "agent",
            f"at most {config.agent.max_steps} steps, {config.agent.tool_calls} tool calls, "
            f"search {config.data.search}, vision {config.agent.vision}",
        ),
        ("questions", f"{len(made.exposed)}, fingerprint {seed.dataset_fingerprint[:16]}"),
        (
            "began with",
            f"seed {seed.name!r}, skills/{seed.skills_version} and prompts/{seed.prompts_version}",
        ),
        *_gate(made),
        *(("setting changed", str(change)) for change in made.manifest.changes),
        ("settings", f"SHA-256 {made.manifest.settings_sha256}"),
    ]
    return _table(("", ""), rows)


def _gate(made: Published) -> list[tuple[str, str]]:
    """What let the edits in, and how many."""
    gate, view = made.config.gate, made.together
    if view is None:
        tests = sum(row.tests for row in made.epochs)
        accepted = sum(row.accepted for row in made.epochs)
        levels = level_words(gate, made.alphas, changed=bool(made.manifest.changes))
        return [("gate", levels), ("tested candidates", f"{tests}, of them accepted {accepted}")]
    run = view.run
    void = f", {view.total('void')} of them void" if view.total("void") else ""
    adopted = "not decided yet" if run is None else f"of them adopted {run.adopted}"
    sentinels = (
        "not told before the decision"
        if run is None
        else f"{run.sentinel_wins} won, {run.sentinel_losses} lost, p {run.sentinel_p:.2g}"
    )
    return [
        ("gate", f"factorial, q {float(q_of(gate)):g}, cap {gate.cap:g}"),
        ("pairs", f"{view.total('done')} of {view.total('planned')}{void}"),
        ("edits tested together", f"{len(view.proposed)}, {adopted}"),
        ("sentinels (edits that change nothing)", sentinels),
    ]


def _at_work(config: Config, role: str) -> bool:
    return role != "vision" or config.agent.vision == "describe"


def _models(config: Config, role: str) -> str:
    if not _at_work(config, role):
        return ""
    serving = [endpoint for endpoint in config.llm.endpoints if role in endpoint.roles]
    names = {
        f"{endpoint.model} (the embedded simulator)"
        if endpoint.base_url == _TWIN
        else endpoint.model
        for endpoint in serving
    }
    return ", ".join(sorted(names))


def _gains(made: Published) -> str:
    if not made.gains:
        return (
            "None is claimed: this package is the seed's own, or it was not evaluated on a pool "
            "beside the seed's."
        )
    rows = [
        (
            gain.pool,
            _share(gain.seed_right, gain.planned, gain.seed_missing),
            _share(gain.right, gain.planned, gain.missing),
            _difference(gain),
            f"{gain.paired.wins} won, {gain.paired.losses} lost of {gain.paired.pairs}",
            f"{gain.paired.p:.2g}",
        )
        for gain in made.gains
    ]
    columns = ("pool", "seed", "this package", "gain", "paired questions", "p")
    notes = (
        "Right of planned questions, with Wilson's 95 % interval; a missing one (an outage) counts "
        "as planned and is no pair. Gain: of the pairs, with its 95 % interval. p: exact one-sided "
        "McNemar test that the package is better."
    )
    pools = {gain.pool for gain in made.gains}
    if "val" in pools:
        notes += (
            "\n\nThe package was chosen on val, among those of all epochs, so that its gain there "
            "is flattered."
        )
    notes += (
        " Test was never seen by training: what is claimed stands there."
        if "test" in pools
        else " It was not evaluated on test, so that no gain is claimed."
    )
    return f"{_table(columns, rows)}\n\n{notes}"


def _share(right: int, planned: int, missing: int) -> str:
    low, high = wilson(right, planned)
    lost = f", {missing} missing" if missing else ""
    return f"{right}/{planned} = {right / max(1, planned):.1%} [{low:.0%}, {high:.0%}]{lost}"


def _difference(gain: Gain) -> str:
    paired = gain.paired
    share = (paired.wins - paired.losses) / max(1, paired.pairs)
    return f"{share:+.1%} [{paired.low:+.0%}, {paired.high:+.0%}]"


def _edits(made: Published) -> str:
    rows = []
    for held in made.documents:
        for hop in held.history.hops:
            for row in hop.edits:
                origin = origin_of(hop, row)
                left = held.lines.get(edit_key(row), 0)
                rows.append((held.history.name, origin.place, row.op, *_odds(origin), str(left)))
    if not rows:
        return "None: the texts are the seed's."
    if made.together is not None:
        return _tested(made)
    columns = (
        "document",
        "when",
        "edit",
        "verdict",
        "p_gate",
        "gain at least",
        "W/L",
        "lines left",
    )
    return (
        f"{_table(columns, rows)}\n\n"
        "e1 s2: epoch 1, step 2. Edits of one step were tested together. p_gate: how probable such "
        "evidence is if they change nothing; gain at least: lower confidence bound of the gain on "
        "the gate's units; W/L: units won and lost; left: lines of the edit that stand in the "
        "text. A slow update's edits were kept because a paired test on val showed no harm: W/L "
        "are its questions, and they have no p_gate."
    )


def _tested(made: Published) -> str:
    """The same of a run under the factorial gate, which has tested every edit by itself."""
    rows = []
    for held in made.documents:
        for hop in held.history.hops:
            for row in hop.edits:
                origin = origin_of(hop, row)
                left = held.lines.get(edit_key(row), 0)
                rows.append(
                    (
                        held.history.name,
                        origin.tested_as or "-",
                        row.op,
                        origin.verdict,
                        "-" if origin.p is None else f"{origin.p:.3g}",
                        _gain_of(origin),
                        "-" if origin.wins is None else f"{origin.wins}/{origin.losses}",
                        "-" if origin.pairs is None else str(origin.pairs),
                        str(left),
                    )
                )
    columns = (
        "document",
        "tested as",
        "edit",
        "verdict",
        "p",
        "gain",
        "W/L",
        "pairs",
        "lines left",
    )
    return (
        f"{_table(columns, rows)}\n\n"
        "e1/...: proposed in epoch 1. Every pair is two fresh draws of a unit, the edit on in one "
        "arm and off in the other by its own coin. W/L: pairs won and lost; p: how probable so "
        "many wins are if the edit changes nothing; gain: its mean over random backgrounds of the "
        "other edits, with its 95 % interval, too large on average, for the edits were adopted "
        "because they won much; left: lines of the edit that stand in the text."
    )


def _gain_of(origin: Origin) -> str:
    if origin.effect is None:
        return "-"
    return f"{origin.effect:+.1%} [{origin.low:+.0%}, {origin.high:+.0%}]"


def _odds(origin: Origin) -> tuple[str, str, str, str]:
    return (
        f"{origin.verdict} (in sample)" if origin.in_sample else origin.verdict,
        "-" if origin.p_gate is None else f"{origin.p_gate:.3g}",
        "-" if origin.lower_bound is None else f"{origin.lower_bound:+.1%}",
        "-" if origin.wins is None else f"{origin.wins}/{origin.losses}",
    )


def _limits(made: Published) -> str:
    config = made.config
    limits = []
    if config.agent.skill_routing == "oracle":
        limits.append(
            "**Oracle routing.** The agent was handed the skill of the question's task type by the "
            "benchmark's own label. Where no label is known, a skill must be chosen first, and the "
            "gains above do not hold as they stand."
        )
    else:
        limits.append("The agent chose among the skills itself and saw no label of the benchmark.")
    simulated = [name for role, name in _ROLES if _simulated(config, role)]
    if simulated:
        limits.append(
            f"**Simulated.** The roles {', '.join(simulated)} were played by the embedded "
            "simulator, which is no language model: the gains say nothing about a real one."
        )
    refused = sorted({origin.place for origin in _origins(made) if origin.verdict not in _LET_IN})
    if refused:
        limits.append(
            f"**Not accepted.** The package holds edits that no test let in: {', '.join(refused)}."
        )
    limits += [
        *_errors(made),
        "The gains are those of the models named above, over trees made as those of the run were.",
    ]
    return "\n".join(f"- {limit}" for limit in limits)


def _errors(made: Published) -> list[str]:
    """How many of the edits may be wrong ones."""
    view = made.together
    if view is None:
        return [
            " ".join(bound_lines(made.epochs)) + " Which ones, nobody knows.",
            "*In sample*: a class with too few videos was tested on questions whose failures the "
            "editor had read, so that only val and test show whether such an edit generalises.",
        ]
    if view.run is None or view.void:
        return [
            "Nothing is guaranteed of any edit: the run has not decided, or its claims are void."
        ]
    q = float(Fraction(view.run.q))
    return [
        f"Of the adopted edits a share of at most {q:g} is expected to change nothing. Which ones, "
        "nobody knows.",
        "Known from simulation alone: harmful edits inside that share, interactions between edits, "
        "edits that help some units and hurt others.",
    ]


def _origins(made: Published) -> Iterator[Origin]:
    for held in made.documents:
        for hop in held.history.hops:
            yield from (origin_of(hop, row) for row in hop.edits)


def _simulated(config: Config, role: str) -> bool:
    return _at_work(config, role) and any(
        e.base_url == _TWIN and role in e.roles for e in config.llm.endpoints
    )


def _licence(made: Published, let_pass: int) -> str:
    but = ""
    if let_pass:
        but = (
            f" But for {let_pass} such passages that the seed's own documents had and that were "
            "let pass by name: look at them before you hand this on."
        )
    return (
        f"The texts were held against all {len(made.exposed)} questions of the run: they quote no "
        "question id, no option of four words or more, no question of eight words or more, and no "
        f"sentence with a gold answer from what their editor had read.{but} No subtitle, frame or "
        "answer key is part of this package.\n\n"
        "If the run's questions were Video-MME's: its licence allows academic research only, and "
        "forbids to distribute any part of the benchmark. To repeat the run, get the questions "
        "from the benchmark itself."
    )


def _files(changed: Sequence[str], *, plain: bool) -> str:
    lines = [
        "`skills/NAME.md`: Markdown with a front matter (name, description, task_type), as agents "
        "read a SKILL.md. `skills/_default.md` serves task types without their own.",
        "`prompts/system.md`, `prompts/tools/TOOL.md`: what the agent and its tools are told.",
    ]
    if plain:
        lines.append("The comments that mark regions (APPENDIX, MOMENTUM) were taken out.")
    else:
        lines.append(
            "Comments such as `<!-- APPENDIX_START -->` mark regions that training writes apart; "
            "they may be taken out (`bin/trm export --plain`)."
        )
    if changed:
        lines.append("Beside that the export changed: " + "; ".join(changed) + ".")
    else:
        lines.append("Beside that nothing was changed.")
    return "\n".join(f"- {line}" for line in lines)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; a bar inside a cell does not end it."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
    )
