"""Every candidate as a card, the slow updates, and where the best documents come from. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from actors.commands.diff_text import Line
from actors.commands.html.charts import e_path
from actors.commands.html.links import Links, anchor, ids_in
from actors.commands.html.markup import Child, Markup, el, joined
from actors.commands.html.pictures import parts_bar
from actors.commands.html.story import Candidate, Provenance, SlowUpdate, Story
from actors.commands.html.words import (
    REASONS,
    RESULTS,
    STATUSES,
    VERDICTS,
    count,
    exact,
    points,
)
from protocol.rows import DecisionRow, EditRow

__all__ = [
    "candidate_card",
    "diff",
    "documents",
    "edit_list",
    "edits",
    "slow_card",
    "slow_updates",
]

_MARKS = {"accept": "✓", "kept": "✓", "reject": "✕", "dropped": "✕"}
_LOOKED = ("core", "endgame", "end")
_OPEN = 12
"""So many cards of accepted edits stand open; a longer list is read by its heads."""


def edits(story: Story, links: Links) -> Markup:
    """Every step's candidate, epoch by epoch."""
    counted = Counter(one.result for one in story.candidates)
    told = ", ".join(_counted(name, number) for name, number in counted.most_common())
    shown: list[Child] = []
    accepted = 0
    epoch = 0
    for one in story.candidates:
        if one.epoch != epoch:
            epoch = one.epoch
            shown.append(el("h3", f"Epoch {epoch}"))
        accepted += one.result == "accept"
        is_open = one.result == "accept" and accepted <= _OPEN
        shown.append(candidate_card(one, links, is_open=is_open))
    if not shown:
        shown.append(el("p.nothing", "No step is whole yet."))
    else:
        note = (
            "A candidate is what one step changed, tested as one text. The gate bets on it, unit "
            "by unit: each unit that only the candidate answers raises the e-value by half, each "
            "that only the current text answers halves it. It may accept at the ticks only: before "
            "the last one with an e-value of 1/alpha, at the last (in a class of up to 20 units "
            "the only one) by an exact test of the units since the tick before. Even then too many "
            "losses on questions that were safe, or missing answers, may hold it back."
        )
        shown = [
            el("p.note", note),
            el("p.note", f"{count(len(story.candidates), 'step')}: {told}."),
            *shown,
        ]
    return el("section", el("h2", "Edits"), shown, id="edits")


def _counted(result: str, number: int) -> str:
    """``18 rejected``; ``in 4 nothing was wrong that an edit could mend``."""
    if result in RESULTS:
        return f"in {number} {RESULTS[result]}"
    return f"{number} {VERDICTS.get(result, result).lower()}"


def candidate_card(one: Candidate, links: Links, *, is_open: bool) -> Markup:
    """A step: verdict and numbers, path and diff, then each edit with its reason and evidence."""
    return el(
        f"details.card.{_tone(one.result)}",
        el(
            "summary",
            _pill(one.result),
            el("b.title", one.task_type),
            el("span.where", f"epoch {one.epoch}, step {one.step}"),
            _in_sample(one.decision),
            el("span.short", _short(one.decision)),
        ),
        el(
            "div.body",
            el("div.left", _facts(one), [_path_figure(one, n) for n in range(len(one.paths))]),
            el("div.right", _changes(one), edit_list(one.edits, links, one.evidence_pass)),
        ),
        id=anchor(one.run_key),
        open=is_open,
    )


def _tone(result: str) -> str:
    return result if result in VERDICTS else "none"


def _pill(result: str) -> Markup:
    name = VERDICTS.get(result, "No candidate")
    mark = _MARKS.get(result, "")
    return el(f"span.pill.{_tone(result)}", f"{mark} {name}" if mark else name)


def _in_sample(decision: DecisionRow | None) -> Markup | None:
    if decision is None or not decision.in_sample:
        return None
    return el(
        "span.flag",
        "in sample",
        title="The gate tested on units whose failures the editor had read, too.",
    )


def _short(decision: DecisionRow | None) -> str:
    if decision is None:
        return ""
    told = f"{decision.wins} won, {decision.losses} lost"
    return f"{told}, p {exact(decision.p_gate)}" if decision.reason in _LOOKED else told


def _facts(one: Candidate) -> Markup:
    facts: list[tuple[str, Child]] = []
    if (row := one.decision) is not None:
        facts += [
            ("why", REASONS.get(row.reason, row.reason)),
            ("units", f"{row.evaluated} of {row.n_units} tested"),
            ("won / lost / tied", f"{row.wins} / {row.losses} / {row.ties}"),
            ("e-value", f"{row.e_value:.3g}"),
        ]
        if row.reason in _LOOKED:
            facts.append(("p of the gate", f"{exact(row.p_gate)} at level {row.alpha:g}"))
        if row.lower_bound is not None:
            facts.append(("gain at least", f"{points(row.lower_bound)} points"))
        if row.missing:
            facts.append(("missing", str(row.missing)))
        facts.append(("rollouts", f"{row.rollouts} + {row.baseline_rollouts} of the current text"))
    else:
        facts.append(("why", RESULTS.get(one.result, one.result.replace("_", " "))))
    if one.gain is not None:
        facts.append(("planted truth", el("b", f"{points(one.gain)} points, {one.worth}")))
    if (step := one.row) is not None:
        wrong = step.planned - step.right - step.missing
        judged = f"{count(step.defects, 'defect')}, {count(step.lapses, 'lapse')}"
        judged += f", {step.degraded} degraded" if step.degraded else ""
        facts += [
            ("batch", f"{step.right} of {step.planned} right, {wrong} wrong"),
            ("diagnoses", judged),
            ("edit budget", str(step.edit_budget)),
        ]
    return el("dl.facts", [(el("dt", name), el("dd", value)) for name, value in facts])


def _path_figure(one: Candidate, number: int) -> Markup | None:
    path = one.paths[number]
    if not path.looks:
        return None
    what = f"e-value, {path.name}" if path.name else "e-value by units tested"
    return el("figure.epath", el("figcaption", f"{what}; ticks: it may accept"), e_path(path))


def _changes(one: Candidate) -> Child:
    if one.diff:
        return diff(one.diff)
    if one.decision is not None:
        return el("p.nothing", "The candidate’s text is not in the ledger; its edits are below.")
    return None


_LINES = {"same": "s", "removed": "d", "added": "a", "changed": "c", "remark": "m"}


def diff(lines: Sequence[Line]) -> Markup:
    """Lines that went, came or changed; words are marked inside a changed line."""
    shown: list[Child] = []
    for number, line in enumerate(lines):
        if line.mark == "hunk":
            shown.append(el("span.gap", "⋯") if number else None)
        elif line.mark == "changed":
            pieces = [
                piece.text
                if piece.mark == "same"
                else el("ins" if piece.mark == "added" else "del", piece.text)
                for piece in line.pieces
            ]
            shown.append(el("span.c", el("i", "~"), pieces, "\n"))
        else:
            sign = {"removed": "−", "added": "+"}.get(line.mark, " ")
            shown.append(el(f"span.{_LINES[line.mark]}", el("i", sign), line.text, "\n"))
    return el("pre.diff", shown, tabindex=0)


def edit_list(rows: Sequence[EditRow], links: Links, evidence_pass: str) -> Markup | None:
    """Each edit with its fate, its reason and the questions that it answers to."""
    if not rows:
        return None
    return el("ol.edits", [_edit(row, links, evidence_pass) for row in rows])


def _edit(row: EditRow, links: Links, evidence_pass: str) -> Markup:
    applied = row.status == "applied"
    fate = STATUSES.get(row.status, row.status)
    detail = row.detail if row.detail and not applied else ""
    asked = [links.to(one, evidence_pass) for one in ids_in(row.support)]
    place = f" · {row.document}" if row.document != "skill" else ""
    return el(
        "li" if applied else "li.off",
        el(
            "p.op",
            el("b", row.op.replace("_", " ") + place),
            el("span.fate", fate + (f": {detail}" if detail else "")),
        ),
        el("blockquote.target", row.target.strip("\r\n")) if row.target and not applied else None,
        el("blockquote", row.content.strip("\r\n")) if row.content else None,
        el("p.reason", el("span", "Reason: "), el("bdi", row.reason)) if row.reason else None,
        el(
            "p.reason",
            el("span", "Evidence: "),
            [joined(", " if number else "", link) for number, link in enumerate(asked)],
        )
        if asked
        else None,
    )


# -- slow updates -----------------------------------------------------------------------


def slow_updates(story: Story, links: Links) -> Markup:
    """One card an epoch."""
    shown: list[Child] = [slow_card(one, links) for one in story.slow]
    note = (
        "At the end of an epoch the same questions are answered under its first and its last "
        "package; from the difference momentum regions are written and prompts edited. The result "
        "stands only if val shows no harm."
    )
    return el(
        "section",
        el("h2", "Slow updates"),
        [el("p.note", note), *shown] if shown else el("p.nothing", "None was made yet."),
        id="slow",
    )


_CHANGES = ("regressed", "persistent", "improved", "stable")


def slow_card(one: SlowUpdate, links: Links) -> Markup:
    """What was compared, what was changed, and what val said of it."""
    row = one.row
    counts = [(name, int(getattr(row, name))) for name in _CHANGES]
    whole = sum(number for _, number in counts)
    facts: list[tuple[str, Child]] = [("why", row.reason)]
    if row.result in ("kept", "dropped"):
        facts += [
            ("val, won / lost", f"{row.wins} / {row.losses} of {count(row.pairs, 'pair')}"),
            ("p of harm", exact(row.p_harm)),
            ("mixed score", f"{row.fast_mixed:.3f} → {row.candidate_mixed:.3f}"),
            ("package", f"{row.skills_version}/{row.prompts_version}"),
        ]
    wrote = f"{count(row.momentum, 'momentum region')}, {count(row.prompt_edits, 'prompt edit')}"
    facts.append(("wrote", wrote))
    told = ", ".join(f"{number} {name}" for name, number in counts)
    compared = el(
        "figure.compared",
        el("figcaption", f"{count(whole, 'question')} compared"),
        parts_bar(counts, 0, whole, told),
        el("ul.legend", [el("li", el(f"span.key.{k}"), f"{k} {n}") for k, n in counts]),
    )
    changed = [joined(el("h4", el("bdi", name)), diff(lines)) for name, lines in one.diffs]
    return el(
        f"details.card.{_tone(row.result)}",
        el(
            "summary",
            _pill(row.result) if row.result in VERDICTS else el("span.pill.none", row.result),
            el("b.title", f"Epoch {row.epoch}"),
            el("span.short", f"{row.wins} won, {row.losses} lost on val" if row.pairs else ""),
        ),
        el(
            "div.body",
            el(
                "div.left",
                el("dl.facts", [(el("dt", name), el("dd", value)) for name, value in facts]),
                compared if whole else None,
            ),
            el("div.right", changed, edit_list(one.edits, links, f"e{row.epoch}/slow/after")),
        ),
        id=anchor(f"e{row.epoch}/slow"),
        open=row.result == "kept",
    )


# -- documents --------------------------------------------------------------------------


def documents(story: Story) -> Markup:
    """The best package's changed documents, the lines of edits marked with their candidate."""
    run = story.run
    own = {edit_of(row): one.run_key for one in story.candidates for row in one.edits}
    slow = {edit_of(row): f"e{one.row.epoch}/slow" for one in story.slow for row in one.edits}
    together = {} if story.factorial is None else dict(story.factorial.origins)
    made_by = own | slow | together
    shown: list[Child] = [_document(one, made_by) for one in story.documents]
    note = f"Package {run.best}. Marked lines were written by an edit; the others are the seed’s."
    if not shown:
        same = "The best package is the seed’s own." if run.best == run.seed else "No text differs."
        return el(
            "section", el("h2", "The trained documents"), el("p.nothing", same), id="documents"
        )
    return el(
        "section", el("h2", "The trained documents"), el("p.note", note), shown, id="documents"
    )


def edit_of(row: EditRow) -> str:
    """The key that ``blame`` names an edit by."""
    return f"{row.run_key}#{row.position}"


def _document(one: Provenance, made_by: dict[str, str]) -> Markup:
    lines: list[Child] = []
    by_edit: defaultdict[str, int] = defaultdict(int)
    for line in one.lines:
        by_edit[line.key] += 1
        look = "span.a" if line.key else "span.s"
        lines.append(el(look, el("i", "+" if line.key else " "), line.text, "\n"))
    made = [key for key in by_edit if key]
    written = sum(by_edit[key] for key in made)
    sources = [
        joined(
            ", " if number else "",
            el("a", _place(made_by.get(key, ""), key), href="#" + anchor(made_by[key]))
            if key in made_by
            else el("bdi", key),
            f" ({by_edit[key]})",
        )
        for number, key in enumerate(made)
    ]
    return el(
        "details.card.doc",
        el(
            "summary",
            el("b.title", el("bdi", one.name)),
            el("span.where", one.version),
            el(
                "span.short",
                f"{written} of {count(len(one.lines), 'line')} by {count(len(made), 'edit')}",
            ),
        ),
        el("p.note.bad", f"Its origin cannot be told: {one.why_not}") if one.why_not else None,
        el("p.note", "Lines by edit: ", sources) if sources else None,
        el("pre.diff.text", lines, tabindex=0),
    )


def _place(run_key: str, key: str) -> str:
    place, _, position = key.rpartition("#")
    if place.endswith("/adopted"):
        return run_key or key
    if not run_key or not position.isdigit():
        return key
    return f"{run_key}, edit {int(position) + 1}"
