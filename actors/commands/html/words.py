"""Numbers and terms as the report says them. Pure."""

from __future__ import annotations

__all__ = [
    "CHECKS",
    "REASONS",
    "RESULTS",
    "STATUSES",
    "THIN",
    "VERDICTS",
    "chance",
    "count",
    "duration",
    "exact",
    "interval",
    "near",
    "points",
    "share",
    "verb",
]

MINUS = "\N{MINUS SIGN}"
THIN = "\N{NARROW NO-BREAK SPACE}"

VERDICTS = {
    "accept": "Accepted",
    "reject": "Rejected",
    "undecided": "Undecided",
    "untestable": "Untestable",
    "kept": "Kept",
    "dropped": "Dropped",
}

REASONS = {
    "core": "the e-value had reached 1/alpha at a look before the last",
    "endgame": "the exact test at the last look let it in",
    "end": "the last look did not let it in",
    "futile_exact": "no later look could have accepted any more",
    "futile_power": "to be accepted had become unlikely",
    "harm": "there was evidence of harm",
    "unreadable": "the agent's replies could not be read, the current skill's neither",
    "guardrail": "too many losses on questions that were safe before",
    "missing": "too many answers were missing",
    "identical": "the candidate was the current text",
}

RESULTS = {
    "no_cases": "nothing was wrong that an edit could mend",
    "no_edits": "the editor proposed no edit",
    "none_applied": "no proposed edit could be applied",
    "already_rejected": "the same candidate had been rejected before",
    "editor_failed": "no reply of the editor could be read",
    "aborted": "too many diagnoses said nothing",
}

STATUSES = {
    "applied": "applied",
    "no_match": "target not found",
    "ambiguous": "target found several times",
    "protected": "region is protected",
    "marker": "touches a region's marker",
    "frozen": "section is frozen",
    "empty": "empty",
    "noop": "changes nothing",
    "too_long": "too long",
    "leak": "quotes a question",
    "over_budget": "over the edit budget",
    "not_chosen": "not chosen",
    "already_rejected": "rejected before",
    "like_rejected": "much like one rejected before",
}

CHECKS = {
    "no_search": ("Did not search", "no tool was called"),
    "extraction_failure": ("Read badly", "what a tool returned was lost or invented"),
    "search_failure": ("Did not find it", "nodes that held the answer were never opened"),
    "reasoning_failure": ("Reasoned wrongly", "the evidence was there"),
    "mixed": ("Several at once", "none of the checks settled it"),
}


def share(part: int, whole: int) -> str:
    """``70.8 %``."""
    return f"{100 * part / whole:.1f}{THIN}%" if whole else "\N{EN DASH}"


def points(gain: float) -> str:
    """A difference of shares in percentage points, signed: ``+20.8``."""
    text = f"{100 * gain:+.1f}"
    return text.replace("-", MINUS) if text != "-0.0" else "+0.0"


def interval(low: float, high: float) -> str:
    """``+10.0 to +31.0``."""
    return f"{points(low)} to {points(high)}"


def exact(p: float) -> str:
    """A probability with two digits that count, never as zero."""
    if p >= 0.995:
        return "1"
    return f"{p:.2g}" if p >= 1e-4 else f"{p:.0e}".replace("e-0", "e-").replace("-", MINUS)


def chance(p: float) -> str:
    """``p = 0.00017``."""
    return f"p\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{exact(p)}"


def near(text: str) -> str:
    """The words on one line."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def count(number: int, noun: str = "", plural: str = "") -> str:
    """``1,829 calls``."""
    told = f"{number:,}"
    if not noun:
        return told
    return f"{told} {noun if number == 1 else plural or noun + 's'}"


def verb(number: int, one: str, many: str) -> str:
    """``is`` or ``are``."""
    return one if number == 1 else many


def duration(seconds: float) -> str:
    """``2 h 05 min``, ``36 s``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}{THIN}s"
    if whole < 3600:
        return f"{whole // 60}{THIN}min {whole % 60:02}{THIN}s"
    return f"{whole // 3600}{THIN}h {whole % 3600 // 60:02}{THIN}min"
