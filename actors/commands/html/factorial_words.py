"""The factorial gate in sentences: verdicts, the decision, what is guaranteed. Pure."""

from __future__ import annotations

from fractions import Fraction

from actors.commands.html.story import FactorialStory, Story, TestedEdit
from actors.commands.html.words import THIN, chance, count, exact, share
from actors.factorial_view import FactorialView
from actors.gate.factorial.binomial import tail
from protocol.factorial_rows import PROMPTS, FactorialEditRow
from protocol.slow import SYSTEM

__all__ = [
    "BRIEF",
    "STATES",
    "UNDECIDED",
    "bound_words",
    "decision_words",
    "document_name",
    "guarantee_words",
    "lived_words",
    "none_adopted_words",
    "scope_name",
    "void_lead",
    "whose_pairs",
    "why_words",
]

STATES = {
    "adopted": ("accept", "✓ Adopted"),
    "rejected": ("none", "Not shown to help (rejected)"),
    "dropped": ("reject", "✕ Turned off (dropped)"),
    "live": ("undecided", "Under test (live)"),
}
"""Look and words of an edit's state, its name as everywhere else beside them."""

BRIEF = {
    "adopted": "✓ Adopted",
    "rejected": "Not shown to help",
    "dropped": "✕ Turned off",
    "live": "Under test",
}
"""The same where a line must hold more than that."""

UNDECIDED = (
    "What an edit has won and lost is shown once the run has decided: whoever stopped the run by "
    "such numbers would choose how it ends."
)


def bound_words(q: float) -> str:
    """The bound that the decision keeps."""
    return f"at most {100 * q:g}{THIN}% of the adopted edits are expected to change nothing"


def guarantee_words(view: FactorialView, q: float) -> tuple[str, str]:
    """What is guaranteed, and what is not: a sentence each."""
    if view.void:
        sure = "Nothing. The sentinels failed, so that no p-value of this run counts."
    else:
        sure = (
            f"{bound_words(q).capitalize()}, whatever drift, correlation or outage there was; it "
            "holds because the schedule was fixed and whoever proposes saw nothing of a test."
        )
    unsure = (
        "Harmful edits inside that share, interactions between edits, and edits that help some "
        "units and hurt others: these are known from simulation alone."
    )
    return sure, unsure


def void_lead(view: FactorialView) -> str:
    """What a failing sentinel means."""
    run = view.run
    assert run is not None, "asked only once it has decided"
    return (
        f"Edits that change nothing won {count(run.sentinel_wins, 'pair')} and lost "
        f"{run.sentinel_losses} ({chance(run.sentinel_p)}), which fair coins do not. "
        "Arms were mixed up, or pairs were counted by how they came out. Nothing was adopted, and "
        "nothing of what follows may be claimed."
    )


def none_adopted_words(story: Story, whole: str, soon: str) -> tuple[str, str]:
    """Lead and body of a run whose best package is the seed's. soon: where the run stands."""
    assert story.factorial is not None, "asked only of such a run"
    view = story.factorial.view
    proposed = count(len(view.proposed), "edit")
    done = count(view.total("done"))
    if view.run is None:
        planned = count(view.total("planned"), "pair")
        body = f"{whole}, {proposed} under test, {done} of {planned} answered.{soon}"
        return "Undecided: this run decides once, after its last pair.", body
    lead = (
        "Nothing beat the seed’s documents on val."
        if view.run.adopted
        else "No edit was shown to help."
    )
    body = (
        f"{whole}, {proposed} tested on {count(view.total('done'), 'pair')}, {view.run.adopted} "
        f"adopted; the seed package {story.run.seed} remains the best.{soon}"
    )
    return lead, body


def decision_words(view: FactorialView) -> str:
    """How the decision was made: M, tau, cut."""
    run = view.run
    if run is None:
        return "The run has not decided yet: that happens once, after the last pair."
    q, cap = float(Fraction(run.q)), float(Fraction(run.cap))
    whole = count(run.n_edits, "edit")
    tau = (
        f"Of all {whole} that were ever proposed, turned off ones included, none with a p above "
        f"tau = {exact(run.tau)} may be adopted: the largest p, at most the cap {cap:g}, up to "
        f"which useless edits are expected to be no more than {q:g} of all."
    )
    if run.cut is None:
        cut = "No p-value was small enough, so that there is no cut and nothing is adopted."
    else:
        passed = count(run.passed, "edit")
        cut = (
            f"The cut {exact(run.cut)} is the largest p up to which they are expected to be no "
            f"more than {q:g} of those that get in; {passed} lie at or below it."
        )
        if run.passed > run.adopted and run.ok:
            cut += f" Of an exclusive group only the smallest counts, so that {run.adopted} remain."
    return f"{tau} {cut}"


def why_words(story: FactorialStory, one: TestedEdit) -> str:
    """Why an edit has its verdict."""
    row, run = one.view.row, story.view.run
    if run is None or row.p is None:
        return "the run has not decided yet"
    if row.state == "dropped":
        return (
            f"so many losses have a probability of {_drop_p(one)} if it changes nothing; at or "
            f"below {story.drop_harm:g} an edit is turned off. It counts with p = 1."
        )
    if not run.ok:
        return "the sentinels failed: nothing is adopted, whatever its p"
    if run.cut is None:
        return f"p {exact(row.p)}; no p of the run was small enough"
    if row.state == "adopted":
        return f"p {exact(row.p)} is at or below the cut {exact(run.cut)}"
    if row.p > run.cut * (1 + 1e-12):
        return f"p {exact(row.p)} is above the cut {exact(run.cut)}"
    return f"p {exact(row.p)} is below the cut, but another edit of its group has a smaller one"


def _drop_p(one: TestedEdit) -> str:
    row = one.view.row
    wins, losses = row.wins or 0, row.losses or 0
    return exact(float(tail(wins + losses, losses)))


def lived_words(view: FactorialView, one: TestedEdit) -> str:
    """Where the edit was in every phase since it was born."""
    row = one.view.row
    if view.run is None:
        return f"under test since epoch {row.born}"
    if (end := one.view.dropped_after) is not None:
        when = f"epoch {end}" if end == row.born else f"epochs {row.born} to {end}"
        return f"live in {when}, turned off after it"
    when = f"epoch {row.born}" if row.born == view.n_epochs else f"epochs {row.born} to "
    when += "" if row.born == view.n_epochs else str(view.n_epochs)
    return f"live in {when} and the certification, then {row.state}"


def share_words(wins: int, losses: int) -> str:
    """``83 of 161, 51.6 %``."""
    return f"{wins} of {wins + losses}, {share(wins, wins + losses)}"


def scope_name(task_type: str) -> str:
    """A class; the prompts, which belong to none."""
    return "System prompt and tool prompts" if task_type == PROMPTS else task_type


def document_name(row: FactorialEditRow) -> str:
    """The document of an edit of the prompts."""
    return "the system prompt" if row.document == SYSTEM else f"the prompt of {row.document}"


def whose_pairs(row: FactorialEditRow) -> str:
    """The pairs that an edit is tested on."""
    return "the pairs of all classes" if row.task_type == PROMPTS else "the class’s pairs"
