"""Diagnosis, trouble, cost, every question, and how to read it all. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from actors.commands.html.markup import Child, Markup, el, joined, table
from actors.commands.html.passes import BASELINE, Pass
from actors.commands.html.pictures import CAUSES, bar, waterfall
from actors.commands.html.story import Endpoint, Questioned, Story
from actors.commands.html.transcripts import MOST_CHARS, Embedded
from actors.commands.html.words import STATUSES, count, share

__all__ = ["about", "cost", "diagnosis", "questions", "trouble"]


def diagnosis(story: Story) -> Markup:
    """The waterfall as a picture."""
    if not story.diagnosed:
        body: Child = el("p.nothing", "No wrong answer was diagnosed yet.")
    else:
        present = {one.cause for one in story.diagnosed}
        legend = [
            el("li", el(f"span.key.{cause}"), el("b", cause), f" {meaning}")
            for cause, meaning in CAUSES.items()
            if cause in present
        ]
        body = joined(
            el(
                "p.note",
                "Why answers were wrong, by the first check that holds. A defect becomes an edit, "
                "everything else at most a reminder.",
            ),
            waterfall(story.diagnosed),
            el("ul.legend.tall", legend),
        )
    return el("section", el("h2", "Why answers were wrong"), body, id="diagnosis")


def trouble(story: Story) -> Markup:
    """Failures by kind: infrastructure, endpoints, the agent, the editor."""
    found = story.trouble
    answered, not_applied = found.answered, sum(found.edits.values())
    asked = answered + sum(found.missing.values())
    failed: dict[str, int] = {}
    for one in (*story.cost.roles, *((story.cost.embeds,) if story.cost.embeds else ())):
        for kind, number in one.failed.items():
            name = f"{kind.replace('_', ' ')} ({one.role})"
            failed[name] = failed.get(name, 0) + number
    tries = sum(one.answered for one in story.cost.roles) + sum(failed.values())
    edits = {STATUSES.get(name, name): number for name, number in found.edits.items()}
    proposed = [row for one in story.candidates for row in one.edits]
    proposed += [row for one in story.slow for row in one.edits]
    applied = sum(row.status == "applied" for row in proposed)
    missing = {name.replace("_", " "): number for name, number in found.missing.items()}
    answers = "Infrastructure failed; never counted wrong."
    groups = [
        _counted("Missing answers", answers, missing, asked),
        _counted("Failed tries at endpoints", "A later try may have answered.", failed, tries),
        _counted("Trouble of the agent", "Answers with it, right or wrong.", found.agent, answered),
        _counted("Edits not applied", "Of what the editor proposed.", edits, applied + not_applied),
    ]
    return el("section", el("h2", "Failures by kind"), el("div.groups", groups), id="failures")


def _counted(name: str, note: str, kinds: Mapping[str, int], whole: int) -> Markup:
    total = sum(kinds.values())
    rows: list[Child] = [
        el(
            "div.fall",
            el("span.what", kind),
            bar(number / max(1, whole), "count", f"{number} of {whole}"),
            el("span.number", number),
            role="listitem",
        )
        for kind, number in sorted(kinds.items(), key=lambda one: (-one[1], one[0]))
    ]
    return el(
        "div.group",
        el("h3", name),
        el("p.note", f"{note} {count(whole)} in all."),
        el("div", rows, role="list") if total else el("p.nil", "None."),
    )


# -- cost -------------------------------------------------------------------------------


def cost(story: Story) -> Markup:
    """Calls, tokens and money by role."""
    rows = [*story.cost.roles, *((story.cost.embeds,) if story.cost.embeds else ())]
    if not rows:
        return el("section", el("h2", "Cost"), el("p.nothing", "No call was made yet."), id="cost")
    whole = sum(one.prompt_tokens + one.completion_tokens for one in rows)
    priced = any(one.usd is not None for one in rows)
    names = ["role", "calls", "cached", "failed", "tokens in", "tokens out", "share", "", "wait"]
    unpriced = sum(one.unpriced for one in rows)
    return el(
        "section",
        el("h2", "Cost"),
        table(
            [*names, "US dollars"] if priced else names,
            [_role(one, whole, priced=priced) for one in rows],
            "cost",
        ),
        el(
            "p.note",
            "cached: answered from the cache. wait: the median until the first token. "
            + (f"{count(unpriced, 'try', 'tries')} without a price." if priced and unpriced else "")
            + ("" if priced else "The endpoints have no price, so no money is counted."),
        ),
        id="cost",
    )


def _role(one: Endpoint, whole: int, *, priced: bool) -> Markup:
    tokens = one.prompt_tokens + one.completion_tokens
    wait = "–" if one.first_token_s is None else f"{one.first_token_s:.2f} s"
    return el(
        "tr",
        el("td", el("b", one.role), el("small", " ", el("bdi", ", ".join(one.endpoints)))),
        el("td.n", count(one.answered)),
        el("td.n", count(one.cached)),
        el("td.n", count(sum(one.failed.values()))),
        el("td.n", count(one.prompt_tokens)),
        el("td.n", count(one.completion_tokens)),
        el("td.n", share(tokens, whole)),
        el("td.b", bar(tokens / max(1, whole), "count", f"{one.role}: {share(tokens, whole)}")),
        el("td.n", wait),
        el("td.n", "–" if one.usd is None else f"{one.usd:,.4f}") if priced else None,
    )


# -- questions --------------------------------------------------------------------------

_POOLS = {
    "test": "Test, never seen by training",
    "val": "Val, which decides about packages",
    "diag": "Diag, which is trained on",
    "": "In no pool",
}


def questions(
    story: Story, passes: Sequence[Pass], embedded: Embedded, *, transcripts: bool
) -> Markup:
    """Every question with its outcome in every pass, by pool."""
    if not story.questions:
        return el(
            "section", el("h2", "Every question"), el("p.nothing", "None is known."), id="questions"
        )
    by_key = {one.key: one for one in passes}
    numbered = list(enumerate(story.questions))
    changes = {name: "down" for one in story.comparisons for name in one.lost}
    changes |= {name: "up" for one in story.comparisons for name in one.won}
    shown: list[Child] = []
    for pool, title in _POOLS.items():
        own = [(number, one) for number, one in numbered if one.pool == pool]
        if own:
            shown.append(_pool(title, own, by_key, changes))
    kinds = sorted({one.task_type for one in story.questions})
    return el(
        "section",
        el("h2", "Every question"),
        el("p.note", _held(story, embedded, transcripts=transcripts)),
        _filters(kinds, [pool for pool in _POOLS if any(q.pool == pool for q in story.questions)]),
        el("ul.legend", [el("li", el(f"i.{look}"), name) for look, name in _OUTCOMES.items()]),
        shown,
        el("p.paper", "The list of questions is left out on paper."),
        id="questions",
    )


_OUTCOMES = {"r": "right", "w": "wrong", "x": "missing"}


def _held(story: Story, embedded: Embedded, *, transcripts: bool) -> str:
    asked = count(len(story.questions), "question")
    if not transcripts:
        return f"{asked}. Made without transcripts: outcomes only."
    held = f"{asked}; {count(embedded.held, 'transcript')} in this page, a click on a question away"
    if embedded.left_out:
        limit = f"{MOST_CHARS // 1_000_000} MB"
        return (
            f"{held}. {count(embedded.left_out)} more found no room under {limit}; those that the "
            "verdict and the edits rest on came first, those of the gate and of snapshots last. "
            "All of them are in run.db, table traces."
        )
    return f"{held}."


def _filters(kinds: Sequence[str], pools: Sequence[str]) -> Markup:
    return el(
        "div.filters",
        _choice("f-pool", "Pool", [("", "all"), *((pool, pool) for pool in pools if pool)]),
        _choice("f-class", "Class", [("", "all"), *((kind, kind) for kind in kinds)]),
        _choice(
            "f-change",
            "Outcomes",
            [
                ("", "all"),
                ("w", "wrong somewhere"),
                ("r", "always right"),
                ("f", "always wrong"),
                ("up", "won: best right, seed wrong"),
                ("down", "lost: best wrong, seed right"),
                ("x", "missing somewhere"),
            ],
        ),
        el("label", "Words ", el("input", id="f-text", type="search", autocomplete="off")),
        el("output", "", id="f-count", aria_live="polite"),
        hidden=True,
        id="filters",
    )


def _choice(name: str, label: str, options: Sequence[tuple[str, str]]) -> Markup:
    return el(
        "label",
        f"{label} ",
        el("select", [el("option", text, value=value) for value, text in options], id=name),
    )


def _pool(
    title: str,
    own: Sequence[tuple[int, Questioned]],
    by_key: Mapping[str, Pass],
    changes: Mapping[str, str],
) -> Markup:
    columns: dict[str, Pass] = {}
    for _, one in own:
        for key in _keys(one):
            known = by_key[key]
            columns[known.column] = min(known, columns.get(known.column, known))
    order = sorted(columns, key=lambda name: columns[name])
    rows = [
        _question(number, one, order, by_key, changes.get(one.question_id)) for number, one in own
    ]
    return el(
        "details.pool",
        el("summary", el("b", title), el("span.short", count(len(own), "question"))),
        table(("question", *order), rows, "outcomes", ("", *(_about(n) for n in order))),
        open=True,
    )


def _about(column: str) -> str:
    """What the short name of a column stands for."""
    what = {
        "baseline": "the seed’s own answer, which chose the split",
        "seed": "the seed’s documents before training",
        "snapshot": "draws of the current skill for the gate",
        "fast": "before the slow update",
        "slow": "the slow update: its comparison, or its candidate",
        "final": "the package at the end of the epoch",
        "step": "answered for the editor",
        "gate": "answered by a candidate for the gate",
    }
    epoch, _, kind = column.partition(" ")
    if epoch == "pairs":
        return f"both arms of the factorial gate's pairs in phase {kind}"
    if not kind:
        return what.get(epoch, "the package at the end of the epoch")
    return f"epoch {epoch[1:]}: {what.get(kind, kind)}"


def _keys(one: Questioned) -> list[str]:
    own = [] if one.seed is None else [BASELINE]
    return own + [row.run_key for row in one.outcomes]


def _question(
    number: int,
    one: Questioned,
    order: Sequence[str],
    by_key: Mapping[str, Pass],
    change: str | None,
) -> Markup:
    cells: defaultdict[str, list[str]] = defaultdict(list)
    if one.seed is not None:
        cells[by_key[BASELINE].column].append("r" if one.seed[1] else "w")
    for row in sorted(one.outcomes, key=lambda row: by_key[row.run_key]):
        mark = {"right": "r", "wrong": "w"}.get(row.outcome, "x")
        cells[by_key[row.run_key].column].append(mark)
    marks = [mark for column in cells.values() for mark in column]
    text = one.text if one.known else "its text is not at hand"
    return el(
        "tr",
        el(
            "th",
            el("a", el("bdi", one.question_id), href=f"#q-{number}", data_q=number),
            el("small", el("bdi", one.task_type)),
            el("span.text", el("bdi", text)),
            scope="row",
        ),
        [el("td.o", [_mark(mark) for mark in cells[name]]) for name in order],
        id=f"q-{number}",
        data_pool=one.pool,
        data_class=one.task_type,
        data_marks="".join(marks),
        data_change=change,
    )


def _mark(mark: str) -> Markup:
    return el(f"i.{mark}", el("span", _OUTCOMES[mark]))


# -- about ------------------------------------------------------------------------------

_UNIT = ("unit", "All questions of one class in one video: the gate’s atom of evidence.")
_MISSING = (
    "missing",
    "Infrastructure failed: neither right nor wrong, counted in what was planned.",
)
_SCORE = ("mixed score", "Half accuracy, half a proper score of the stated confidence.")
_TERMS = (
    _UNIT,
    ("won, lost", "Right only under the new text; right only under the old one."),
    (
        "e-value",
        "1.5 to the power of wins times 0.5 to the power of losses, over units in an order that is "
        "blind to the outcomes. If the edit changes nothing, it comes to exceed 1/alpha with a "
        "probability of at most alpha.",
    ),
    ("p of the gate", "How probable such evidence is if the edit changes nothing."),
    ("gain at least", "Lower confidence bound of an accepted edit’s gain on the gate’s units."),
    ("in sample", "The gate tested on units whose failures the editor had read, too."),
    _MISSING,
    _SCORE,
)
_TOGETHER = (
    _UNIT,
    (
        "pair",
        "Two fresh draws of a unit, arm a and arm b. Every live edit is on in one of them, by its "
        "own coin; the coins are written down before anything is drawn.",
    ),
    ("W, L", "Pairs whose better arm had the edit on; pairs whose better arm had it off."),
    ("D", "Pairs with a better arm that the edit took part in: W + L while it was live."),
    (
        "p",
        "How probable W or more of D are if the edit changes nothing. Of an edit that was turned "
        "off it is 1.",
    ),
    ("sentinel", "An edit that changes nothing and is known to. Its W must look like a coin’s."),
    ("void", "A pair of which infrastructure lost an arm for good. It counts for nobody."),
    _MISSING,
    _SCORE,
)


def about(story: Story) -> Markup:
    """The terms, and what the run was made of."""
    facts = [*story.run.facts, ("workspace", story.run.workspace)]
    terms = _TERMS if story.factorial is None else _TOGETHER
    if story.run.began:
        facts += [("first call", story.run.began[:19]), ("last call", story.run.ended[:19])]
    return el(
        "section",
        el("h2", "How to read this, and what it was made of"),
        el("dl.terms", [(el("dt", name), el("dd", told)) for name, told in terms]),
        el(
            "details",
            el("summary", "Settings and fingerprints"),
            el("dl.facts.wide", [(el("dt", n), el("dd", el("bdi", v))) for n, v in facts]),
        ),
        id="about",
    )
