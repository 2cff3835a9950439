"""The head of the page: what was trained, the verdict, the curves, the classes. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction

import msgspec

from actors.commands.html.charts import Curve, curves
from actors.commands.html.factorial_words import bound_words, none_adopted_words, void_lead
from actors.commands.html.markup import Child, Markup, el, joined, table
from actors.commands.html.pictures import gain_row
from actors.commands.html.story import ClassGain, Comparison, Point, Story
from actors.commands.html.words import chance, count, duration, exact, interval, points, share
from actors.curves import bound_brief

__all__ = ["Verdict", "classes", "curves_section", "head", "verdict_of"]

_LEVEL = 0.05  # of the one claim that a run makes: best against seed on test


class Verdict(msgspec.Struct, frozen=True):
    """tone: ``good``, ``bad``, ``open``. lead: the verdict; body: what it rests on."""

    tone: str
    lead: str
    body: str


def verdict_of(story: Story) -> Verdict:
    """The run in one sentence."""
    run = story.run
    if run.state == "empty":
        return Verdict("open", run.why, "Start or resume it, then make this report again.")
    if story.factorial is not None and story.factorial.view.void:
        return Verdict("bad", "This run’s claims are void.", void_lead(story.factorial.view))
    by_pool = {one.pool: one for one in story.comparisons}
    soon = "" if run.state == "ended" else f" {run.why} What follows is what stands so far."
    if run.best == run.seed:
        return Verdict("open", *_nothing(story, soon))
    if "test" in by_pool:
        return _claim(by_pool["test"], soon)
    if "val" in by_pool:
        one = by_pool["val"]
        planned = count(one.after.planned, "question")
        body = (
            f"On {planned} of val, {_shares(one)}. {_gain(one)}. Val chose the package, so that "
            f"this gain is flattered.{soon}"
        )
        return Verdict("open", "No gain is claimed: test was not evaluated.", body)
    body = f"The best package is {run.best}; it was not evaluated beside the seed's.{soon}"
    return Verdict("open", "No gain is claimed: there is nothing to compare with.", body)


def _nothing(story: Story, soon: str) -> tuple[str, str]:
    whole = count(len(story.epochs), "whole epoch")
    if story.factorial is not None:
        return none_adopted_words(story, whole, soon)
    tests = sum(one.decision is not None for one in story.candidates)
    accepted = sum(one.result == "accept" for one in story.candidates)
    if story.run.state == "running" and not story.epochs:
        lead = "Under way: no epoch is whole yet."
    else:
        lead = "Nothing beat the seed’s documents on val."
    body = (
        f"{whole}, {count(tests, 'candidate')} tested, {accepted} accepted; the seed package "
        f"{story.run.seed} remains the best.{soon}"
    )
    return lead, body


def _claim(one: Comparison, soon: str) -> Verdict:
    paired = one.paired
    gain = (paired.wins - paired.losses) / paired.pairs if paired.pairs else 0.0
    if paired.pairs == 0:
        lead, tone = "No question of test was answered on both sides.", "open"
    elif paired.p <= _LEVEL:
        lead, tone = f"The trained documents gain {100 * gain:.1f} points on test.", "good"
    elif paired.p_loss <= _LEVEL:
        lead, tone = f"The trained documents lose {-100 * gain:.1f} points on test.", "bad"
    else:
        lead, tone = "The trained documents are not shown to be better on test.", "open"
    planned = count(one.after.planned, "question")
    body = f"On {planned} that training never saw, {_shares(one)}. {_gain(one)}.{soon}"
    return Verdict(tone, lead, body)


def _shares(one: Comparison) -> str:
    after, before = one.after, one.before
    return (
        f"they answer {share(after.right, after.planned)} right and the seed’s documents "
        f"{share(before.right, before.planned)}"
    )


def _gain(one: Comparison) -> str:
    paired = one.paired
    gain = (paired.wins - paired.losses) / paired.pairs if paired.pairs else 0.0
    return (
        f"Gain {points(gain)} points (95 % interval {interval(paired.low, paired.high)}), exact "
        f"one-sided {chance(paired.p)}"
    )


def head(story: Story) -> Markup:
    """Title, verdict, the numbers that one asks for first, and what must be known with them."""
    run, verdict = story.run, verdict_of(story)
    played = ", ".join(dict.fromkeys(f"{model} ({role})" for role, model, _ in run.models))
    return el(
        "header.head",
        el("p.kicker", "Training report · ", el("bdi", run.run_id)),
        el(f"h1.{verdict.tone}", verdict.lead),
        el("p.lead", verdict.body),
        el("dl.tiles", _tiles(story)),
        el(
            "p.small",
            "Skills and prompts that steer a video question-answering agent. Seed ",
            el("bdi", run.seed_name),
            f"; models: {played}. {run.why}" if played else f". {run.why}",
        ),
        _cautions(story),
        id="result",
    )


def _tile(name: str, value: Child, note: Child) -> Markup:
    return el("div.tile", el("dt", name), el("dd", el("b", value), el("small", note)))


def _tiles(story: Story) -> list[Child]:
    tiles: list[Child] = []
    for pool, note in (("test", "never seen by training"), ("val", "the package was chosen on it")):
        for one in story.comparisons:
            if one.pool == pool:
                before, after = one.before, one.after
                value = joined(
                    f"{100 * before.share:.1f}",
                    el("span.to", " → "),
                    share(after.right, after.planned),
                )
                tiles.append(_tile(f"{pool.capitalize()}, seed to best", value, note))
    tiles.append(_tested(story))
    roles = story.cost.roles
    tokens = sum(one.prompt_tokens + one.completion_tokens for one in roles)
    usd = [one.usd for one in roles if one.usd is not None]
    price = f", ${sum(usd):,.2f}" if usd else ""
    tiles.append(
        _tile(
            "Model calls",
            count(sum(one.answered for one in roles)),
            f"{_short(tokens)} tokens{price}{_time(story)}",
        )
    )
    missing = sum(story.trouble.missing.values())
    asked = missing + story.trouble.answered
    tiles.append(_tile("Answers missing", count(missing), f"of {count(asked)}"))
    return tiles


def _tested(story: Story) -> Markup:
    """How many edits were let in, and how many of those may be useless."""
    if story.factorial is None:
        tests = [one for one in story.candidates if one.decision is not None]
        accepted = sum(one.result == "accept" for one in tests)
        note = bound_brief(story.epochs) if tests else "none tested yet"
        return _tile("Candidates accepted", f"{accepted} of {len(tests)}", note)
    view = story.factorial.view
    proposed, run = len(view.proposed), view.run
    if run is None:
        return _tile("Edits under test", str(proposed), "decided once, after the last pair")
    note = (
        "nothing may be claimed: the sentinels failed"
        if view.void
        else bound_words(float(Fraction(run.q)))
    )
    return _tile("Edits adopted", f"{run.adopted} of {proposed}", note)


def _short(number: int) -> str:
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return str(number)


def _time(story: Story) -> str:
    run = story.run
    try:
        began, ended = datetime.fromisoformat(run.began), datetime.fromisoformat(run.ended)
    except ValueError:
        return ""
    return f", {duration((ended - began).total_seconds())} from the first to the last"


def _cautions(story: Story) -> Markup | None:
    """What a reader must know before believing a number."""
    told: list[Child] = []
    if story.factorial is not None and story.factorial.view.void:
        told.append(joined(el("b", "Claims void. "), "The sentinels do not look like coins."))
    simulated = list(dict.fromkeys(role for role, _, twin in story.run.models if twin))
    if simulated:
        told.append(
            joined(
                el("b", "Simulated. "),
                f"{_listed(simulated)} {'was' if len(simulated) == 1 else 'were'} played by "
                "the embedded simulator, which is no language model: the gains say nothing about a "
                "real one. The planted truth stands beside each verdict.",
            )
        )
    if story.run.changes:
        told.append(joined(el("b", "Settings changed on the way. "), "; ".join(story.run.changes)))
    if story.run.oracle:
        told.append(
            joined(
                el("b", "Oracle routing. "),
                "The benchmark’s own class label picked the skill.",
            )
        )
    if any(one.decision is not None and one.decision.in_sample for one in story.candidates):
        told.append(
            joined(
                el("b", "In sample. "),
                "Some classes have too few videos to keep the tested ones from the editor; only "
                "val and test show whether such an edit generalises.",
            )
        )
    told += [joined(el("b", "Not readable. "), gap) for gap in story.gaps]
    return el("ul.cautions", [el("li", one) for one in told]) if told else None


def _listed(names: Sequence[str]) -> str:
    """``The agent, the judge and the editor``."""
    told = [f"the {name}" for name in names]
    text = " and ".join([", ".join(told[:-1]), told[-1]] if len(told) > 1 else told)
    return text[:1].upper() + text[1:]


# -- curves -----------------------------------------------------------------------------

_TEST = (
    ("final", "final", "Package at the end of the epoch"),
    ("best_hard", "best-hard", "Best so far by accuracy"),
    ("best_mixed", "best-mixed", "Best so far by mixed score"),
)
_VAL = (
    ("fast", "fast", "Before the slow update"),
    ("slow_candidate", "slow", "The slow update’s candidate"),
    ("final", "final", "Package at the end of the epoch"),
)


def curves_section(story: Story) -> Markup:
    """Test beside val, each with the numbers as a table."""
    on_val = _VAL if story.factorial is None else _VAL[-1:]  # it has no slow update
    figures = [
        _figure(story, "test", "On test, which training never sees", _TEST),
        _figure(story, "val", "On val, which decides about packages", on_val),
    ]
    shown = [figure for figure in figures if figure is not None]
    return el(
        "section",
        el("h2", "Accuracy over the epochs"),
        el(
            "p.note",
            "Right of planned questions, with 95 % intervals; the band is the seed’s.",
        ),
        el("div.figures", shown) if shown else el("p.nothing", "No package was evaluated yet."),
        id="curves",
    )


def _figure(
    story: Story, pool: str, title: str, kinds: Sequence[tuple[str, str, str]]
) -> Markup | None:
    own = [point for point in story.points if point.pool == pool]
    if not own:
        return None
    seed = next((point for point in own if (point.epoch, point.kind) == (0, "seed")), None)
    drawn = [
        Curve(
            name,
            look,
            tuple(sorted((p for p in own if p.kind == kind), key=lambda p: p.epoch)),
            shift=9.0 * (number - 1),
            joined=kind == "final",
        )
        for number, (kind, look, name) in enumerate(kinds)
    ]
    drawn = [curve for curve in drawn if curve.points]
    last = max(point.epoch for point in own)
    legend: list[Child] = [] if seed is None else [_key("seed", f"Seed, {_of(seed)}")]
    legend += [_key(curve.look, f"{curve.name}, {_of(curve.points[-1])}") for curve in drawn]
    return el(
        "figure",
        el("figcaption", title),
        curves(title, seed, drawn, last),
        el("ul.legend", legend),
        el(
            "details",
            el("summary", "The numbers"),
            _numbers(sorted(own, key=lambda point: (point.epoch, point.kind))),
        ),
    )


def _key(look: str, name: str) -> Markup:
    return el("li", el(f"span.key.{look}"), name)


def _of(point: Point) -> str:
    return f"{share(point.right, point.planned)}"


def _numbers(own: Sequence[Point]) -> Markup:
    rows = [
        el(
            "tr",
            el("td", "seed" if point.epoch == 0 else point.epoch),
            el("td", point.kind.replace("_", " ")),
            el("td", point.package),
            el("td.n", f"{point.right}/{point.planned}"),
            el("td.n", share(point.right, point.planned)),
            el("td.n", f"{point.low:.0%} to {point.high:.0%}"),
            el("td.n", point.missing),
        )
        for point in own
    ]
    names = ("epoch", "kind", "package", "right", "share", "95 %", "missing")
    return table(names, rows)


# -- classes ----------------------------------------------------------------------------


def classes(story: Story) -> Markup:
    """The gain of every class on test, else on val."""
    one = next(iter(story.comparisons), None)
    if one is None:
        body: Child = el(
            "p.nothing", "The best package is the seed’s, or was not evaluated beside it."
        )
    else:
        body = _gains(one)
    return el("section", el("h2", "Gain by class"), body, id="classes")


def _gains(one: Comparison) -> Markup:
    whole = ClassGain(
        task_type="All classes",
        planned=one.after.planned,
        before=one.before.right,
        after=one.after.right,
        paired=one.paired,
    )
    told = [whole, *sorted(one.classes, key=lambda c: (-c.planned, c.task_type))]
    widest = max(max(abs(c.paired.low), abs(c.paired.high)) for c in told)
    reach = min(1.0, math.ceil(max(widest, 0.1) * 10 - 1e-9) / 10)
    note = (
        f"On {one.pool}, the best package against the seed’s, the same questions under both: the "
        "gain in percentage points with its 95 % interval, questions won and lost, and the exact "
        "one-sided p of the whole. Intervals of single classes are wide; they are not corrected "
        "for their number."
    )
    rows = [
        el(
            "div.class.whole" if c is whole else "div.class",
            el("b.what", c.task_type),
            _drawn(c, reach),
            el("span.number", points(_share(c))),
            el(
                "small.detail",
                f"{c.before} → {c.after} of {c.planned}; "
                f"{c.paired.wins} won, {c.paired.losses} lost; p {exact(c.paired.p)}",
            ),
            role="listitem",
        )
        for c in told
    ]
    ends = (f"−{reach:.0%}", "no gain", f"+{reach:.0%}")
    return joined(
        el("p.note", note),
        el("div.classes", rows, role="list"),
        el("div.ends", [el("span", end) for end in ends], aria_hidden="true"),
    )


def _share(one: ClassGain) -> float:
    paired = one.paired
    return (paired.wins - paired.losses) / paired.pairs if paired.pairs else 0.0


def _drawn(one: ClassGain, reach: float) -> Markup:
    paired = one.paired
    told = f"{one.task_type}: {points(_share(one))} points, {interval(paired.low, paired.high)}"
    return gain_row(_share(one), paired.low, paired.high, reach, told)
