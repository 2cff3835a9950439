"""The factorial gate: schedule, sentinels, every edit with its course and verdict. Pure."""

from __future__ import annotations

import math
from fractions import Fraction

from actors.commands.html.balance import balance_path
from actors.commands.html.factorial_words import (
    BRIEF,
    STATES,
    UNDECIDED,
    decision_words,
    document_name,
    guarantee_words,
    lived_words,
    scope_name,
    share_words,
    void_lead,
    whose_pairs,
    why_words,
)
from actors.commands.html.links import Links, anchor
from actors.commands.html.markup import Child, Markup, el, joined, table
from actors.commands.html.pictures import bar, gain_row
from actors.commands.html.section_edits import diff
from actors.commands.html.section_proposals import proposals
from actors.commands.html.story import FactorialStory, Story, TestedEdit
from actors.commands.html.words import count, exact, interval, near, points, verb
from actors.factorial_view import ClassView, EditView, FactorialView, PhasePairs
from actors.trainer.score import wilson
from protocol.evolver import Edit
from protocol.factorial_rows import PROMPTS

__all__ = ["factorial", "tested_card"]

_OPEN = 3
"""So many cards of adopted edits stand open; a longer list is read by its heads."""

_GLANCE = 40
"""A longer list of edits is folded up."""

_ORDER = {"adopted": 0, "rejected": 1, "dropped": 2, "live": 3}


def factorial(story: Story, links: Links) -> Markup | None:
    """The whole section; None in a run with the ladder."""
    told = story.factorial
    if told is None:
        return None
    view = told.view
    return el(
        "section",
        el("h2", "The factorial gate"),
        el(
            "p.note",
            "All undecided edits of a class are tested together. A pair is two fresh draws of one "
            "unit; every live edit is on in one arm and off in the other, by its own coin, so that "
            "each pair with a better arm is won or lost by every edit at once.",
        ),
        el("p.void", el("b", "Void. "), void_lead(view)) if view.void else None,
        _promise(told),
        el("h3", "Schedule, fixed before the first draw"),
        _schedule(view),
        el("h3", "Sentinels"),
        _sentinels(view),
        el("h3", "Every edit"),
        el("p.note", decision_words(view)),
        _glance(told) if view.run is not None else el("p.nothing", UNDECIDED),
        _cards(told, links),
        el("h3", "What the editor saw and proposed"),
        proposals(story, links),
        id="factorial",
    )


def _promise(told: FactorialStory) -> Markup:
    run = told.view.run
    if run is None:
        return el("p.note", "Nothing is adopted, and nothing guaranteed, before the decision.")
    sure, unsure = guarantee_words(told.view, float(Fraction(run.q)))
    return el(
        "dl.promise",
        el("dt", "Guaranteed"),
        el("dd", sure),
        el("dt", "Not guaranteed"),
        el("dd", unsure),
    )


# -- schedule ---------------------------------------------------------------------------


def _schedule(view: FactorialView) -> Markup:
    epochs = [f"epoch {number}" for number in range(1, view.n_epochs + 1)]
    names = ["class", "learn from", "test on", *epochs, "certify", "pairs", "", "void"]
    told = [
        "",
        "units whose answers proposals may see",
        "units that edits are tested on",
        *("pairs answered" for _ in epochs),
        "pairs answered after the last proposal",
        "answered or void, of those scheduled",
        "",
        "an arm was lost to infrastructure: counted for nobody",
    ]
    done, planned = view.total("done"), view.total("planned")
    void = view.total("void")
    notes = [
        f"{count(done - void)} of {count(planned)} pairs are answered, {count(view.spent)} of "
        f"{count(view.planned)} draws of a unit spent (budget {count(view.budget)}).",
        f"{count(void, 'pair')} {verb(void, 'is', 'are')} void: an arm was lost to infrastructure, "
        "so that the pair counts for nobody."
        if void
        else "No pair is void.",
    ]
    if view.run is not None and done < planned:
        notes.append("A class without an edit left to test draws no more pairs.")
    rows = [_class(own, view) for own in view.classes]
    return joined(table(names, rows, "schedule", told), el("p.note", " ".join(notes)))


def _class(own: ClassView, view: FactorialView) -> Markup:
    done, planned = own.total("done"), own.total("planned")
    return el(
        "tr",
        el("td", el("b", own.task_type)),
        el("td.n", own.n_design),
        el("td.n", own.n_gate),
        [el("td.n", _phase(phase, decided=view.run is not None)) for phase in own.phases],
        el("td.n", f"{count(done)}/{count(planned)}"),
        el("td.b", bar(done / max(1, planned), "count", f"{own.task_type}: {done} of {planned}")),
        el("td.n", own.total("void")),
    )


def _phase(phase: PhasePairs, *, decided: bool) -> Child:
    if phase.done == phase.planned:
        return count(phase.planned)
    if phase.done or phase.waiting:
        return f"{phase.done}/{phase.planned}"
    return "none" if decided else el("span.to", count(phase.planned))


# -- sentinels --------------------------------------------------------------------------


def _sentinels(view: FactorialView) -> Markup:
    run = view.run
    if run is None:
        return el(
            "p.note",
            "Edits that change nothing, one per class and one of the prompts, are tested like the "
            "others; they must look like coins.",
        )
    verdict = "They look like coins." if run.ok else "They do not look like coins."
    note = (
        "Edits that change nothing, one per class and one of the prompts, tested like the others. "
        "Together they won "
        f"{share_words(run.sentinel_wins, run.sentinel_losses)} of the pairs with a better arm; "
        f"p = {exact(run.sentinel_p)}, two-sided, corrected for having looked at each. {verdict} "
        "The band holds a coin 95 times in 100 at any one pair."
    )
    figures = [_sentinel(one, view.scope(one.row), view) for one in view.sentinels]
    return joined(el("p.note" if run.ok else "p.note.bad", note), el("div.walks", figures))


def _sentinel(one: EditView, own: ClassView, view: FactorialView) -> Markup:
    row = one.row
    wins, losses = row.wins or 0, row.losses or 0
    fails = one.coin_p <= view.sentinel_level
    low, high = wilson(wins, wins + losses) if wins + losses else (0.0, 1.0)
    return el(
        "figure.fails" if fails else "figure",
        el("figcaption", scope_name(row.task_type), el("span.flag", "no coin") if fails else None),
        balance_path(one, [phase.planned for phase in own.phases], None),
        el(
            "small",
            f"W {share_words(wins, losses)} [{low:.0%}, {high:.0%}]; ",
            el("span.near", f"two-sided p {exact(one.coin_p)}"),
        ),
    )


# -- edits ------------------------------------------------------------------------------


def _glance(told: FactorialStory) -> Markup:
    """Every edit's effect with its interval, adopted ones first, then by p."""
    edits = sorted(told.edits, key=lambda one: (_ORDER[one.view.row.state], one.view.row.p or 0.0))
    if not edits:
        return el("p.nothing", "No edit was proposed.")
    shown = [one.view for one in edits]
    wide = [abs(x) for one in shown if one.row.state != "dropped" for x in _bounds(one)]
    reach = min(1.0, math.ceil(max([0.1, *wide]) * 10 - 1e-9) / 10)
    rows = joined(
        el("div.classes.glance", [_glanced(one, reach) for one in shown], role="list"),
        el(
            "div.ends",
            [el("span", end) for end in (f"−{reach:.0%}", "no gain", f"+{reach:.0%}")],
            aria_hidden="true",
        ),
        el(
            "p.note",
            "Gain in percentage points over random backgrounds of the other edits, with its 95 % "
            "interval. Adopted ones were chosen because they won much, so that their gains are too "
            "large on average.",
        ),
    )
    if len(shown) <= _GLANCE:
        return rows
    return el("details", el("summary", f"All {len(shown)} edits at a glance"), rows)


def _bounds(one: EditView) -> tuple[float, float]:
    low, high = one.row.low, one.row.high
    return (-1.0 if low is None else low, 1.0 if high is None else high)


def _glanced(one: EditView, reach: float) -> Markup:
    row = one.row
    low, high = _bounds(one)
    effect = row.effect or 0.0
    drawn = gain_row(
        max(-reach, min(reach, effect)),
        low,
        high,
        reach,
        f"{row.edit_id}: {points(effect)} points, {interval(low, high)}",
    )
    return el(
        "div.class",
        el("span.what", el("a", row.edit_id, href=f"#{anchor(row.edit_id)}")),
        drawn,
        el("span.number", "–" if row.effect is None else points(effect)),
        el(
            "small.detail",
            el(f"span.pill.{STATES[row.state][0]}", BRIEF[row.state]),
            f" {_result(one)}",
        ),
        role="listitem",
    )


def _result(one: EditView) -> str:
    row = one.row
    if row.p is None:
        return ""
    told = f"{row.wins} won, {row.losses} lost"
    if one.dropped_after is not None:
        return f"{told}, {near(f'after epoch {one.dropped_after}')}"
    return f"{told}, {near(f'p {exact(row.p)}')}"


def _cards(told: FactorialStory, links: Links) -> Child:
    shown: list[Child] = []
    adopted, name = 0, ""
    for one in told.edits:
        row = one.view.row
        if row.task_type != name:
            name = row.task_type
            shown.append(el("h4", scope_name(name)))
        adopted += row.state == "adopted"
        is_open = row.state == "adopted" and adopted <= _OPEN
        shown.append(tested_card(told, one, links, is_open=is_open))
    return shown


def tested_card(told: FactorialStory, one: TestedEdit, links: Links, *, is_open: bool) -> Markup:
    """An edit: verdict and numbers, its course, its diff, reason and evidence."""
    row, view = one.view.row, told.view
    own = view.scope(row)
    look, state = STATES[row.state]
    cut = view.run.cut if view.run is not None and row.state != "dropped" else None
    phases = [phase.planned for phase in own.phases]
    return el(
        f"details.card.{look}",
        el(
            "summary",
            el(f"span.pill.{look}", state),
            el("b.title", row.edit_id),
            el("span.where", f"born in epoch {row.born}"),
            el("span.short", _result(one.view)),
        ),
        el(
            "div.body",
            el(
                "div.left",
                _facts(told, one),
                el(
                    "figure.epath",
                    el("figcaption", f"won minus lost, over {whose_pairs(row)}"),
                    balance_path(one.view, phases, cut),
                )
                if one.view.path
                else None,
            ),
            el("div.right", diff(one.diff) if one.diff else None, _edit(one, links)),
        ),
        id=anchor(row.edit_id),
        open=is_open,
    )


def _facts(told: FactorialStory, one: TestedEdit) -> Markup:
    row = one.view.row
    facts: list[tuple[str, Child]] = [
        ("why", why_words(told, one)),
        ("course", lived_words(told.view, one)),
    ]
    if row.wins is not None and row.losses is not None and row.pairs is not None:
        ties = row.pairs - row.wins - row.losses
        after = one.view.discordant - row.wins - row.losses
        seen = f"{one.view.discordant} discordant pairs"
        facts += [
            ("won / lost / tied", f"{row.wins} / {row.losses} / {ties} of {row.pairs} pairs"),
            ("D", f"{seen}, {after} of them while off" if after else seen),
        ]
        if row.effect is not None and row.low is not None and row.high is not None:
            chosen = "; chosen for it, so too large on average" if row.state == "adopted" else ""
            told_effect = f"{points(row.effect)} points, 95 % {interval(row.low, row.high)}{chosen}"
            facts.append(("gain", told_effect))
        if row.p is not None:
            facts.append(("p", exact(row.p)))
    if row.group_id is not None:
        members = [
            other.view.row.edit_id
            for other in told.edits
            if other.view.row.group_id == row.group_id and other is not one
        ]
        facts.append(("excludes", ", ".join(members) or "none is left"))
    if row.task_type == PROMPTS:
        facts.append(("document", document_name(row)))
    facts.append(("proposed by", row.proposed_by))
    if one.gain is not None:
        facts.append(("planted truth", el("b", f"{points(one.gain)} points, {one.worth}")))
    return el("dl.facts", [(el("dt", name), el("dd", value)) for name, value in facts])


def _edit(one: TestedEdit, links: Links) -> Markup | None:
    """What it says, why, and the questions that it answers to."""
    edit: Edit | None = one.view.edit
    if edit is None:
        return None
    asked = [links.to(name, f"{one.view.row.proposed_by}/rollout") for name in edit.support]
    return el(
        "div.edits",
        el("p.op", el("b", edit.op.replace("_", " "))),
        None if one.diff or not edit.content else el("blockquote", edit.content.strip("\r\n")),
        el("p.reason", el("span", "Reason: "), el("bdi", edit.reason)) if edit.reason else None,
        el(
            "p.reason",
            el("span", "Evidence: "),
            [joined(", " if number else "", link) for number, link in enumerate(asked)],
        )
        if asked
        else None,
    )
