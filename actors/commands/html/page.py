"""The whole page: sections, style, script and data, closed off by a content security policy. Pure.

The page loads nothing. Its one script and its one style sheet are let in by their hashes, so that
no text of a run could run even if it came to be taken for markup.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from pathlib import Path

from actors.commands.html.links import Links
from actors.commands.html.markup import Markup, el, joined, legible
from actors.commands.html.passes import BASELINE, Pass, passes_of
from actors.commands.html.section_edits import documents, edits, slow_updates
from actors.commands.html.section_factorial import factorial
from actors.commands.html.section_rest import about, cost, diagnosis, questions, trouble
from actors.commands.html.section_result import classes, curves_section, head
from actors.commands.html.story import Story
from actors.commands.html.transcripts import MOST_CHARS, Embedded, Steps, embed, index_of

__all__ = ["page"]

_HERE = Path(__file__).parent
_PLACES = (
    ("result", "Result"),
    ("curves", "Curves"),
    ("classes", "Classes"),
    ("factorial", "Factorial gate"),
    ("edits", "Edits"),
    ("slow", "Slow updates"),
    ("documents", "Documents"),
    ("diagnosis", "Diagnosis"),
    ("failures", "Failures"),
    ("cost", "Cost"),
    ("questions", "Questions"),
    ("about", "About"),
)


def page(
    story: Story, read: Steps, *, transcripts: bool = True, most: int = MOST_CHARS
) -> tuple[str, Embedded]:
    """The page, and what of the transcripts it holds.

    read: the stored steps of a rollout. most: characters of packed transcripts.
    """
    keys = {row.run_key for one in story.questions for row in one.outcomes}
    passes = passes_of({*keys, BASELINE})
    embedded = Embedded(chunks=(), of={}, held=0, left_out=0)
    if transcripts:
        embedded = embed(story.questions, passes, read, _claimed(story), most)
    body = _body(story, passes, embedded, transcripts=transcripts)
    return _whole(story, passes, embedded, body), embedded


def _claimed(story: Story) -> set[str]:
    """The passes that the verdict rests on, and those that edits were made from."""
    own = {one.outcomes_key for each in story.comparisons for one in (each.before, each.after)}
    return own | {one.evidence_pass for one in story.candidates}


def _body(story: Story, passes: Sequence[Pass], embedded: Embedded, *, transcripts: bool) -> Markup:
    links = Links(story.questions, passes)
    together = factorial(story, links)
    left_out = ("factorial",) if together is None else ("edits", "slow")
    places = [(place, name) for place, name in _PLACES if place not in left_out]
    return joined(
        el("a.skip", "To the result", href="#result"),
        el(
            "nav",
            el("ul", [el("li", el("a", name, href=f"#{place}")) for place, name in places]),
            aria_label="Sections",
        ),
        el(
            "main",
            head(story),
            curves_section(story),
            classes(story),
            together or (edits(story, links), slow_updates(story, links)),
            documents(story),
            diagnosis(story),
            trouble(story),
            cost(story),
            questions(story, passes, embedded, transcripts=transcripts),
            about(story),
        ),
        _reader(),
    )


def _reader() -> Markup:
    """Where the script shows a question and its transcripts."""
    return el(
        "dialog",
        el(
            "div.bar",
            el("h2", "", id="r-title"),
            el("button", "‹", id="r-back", type="button", aria_label="Question before"),
            el("button", "›", id="r-next", type="button", aria_label="Next question"),
            el("button", "Close", id="r-close", type="button"),
        ),
        el("div", "", id="r-body", tabindex=0),
        id="reader",
        aria_labelledby="r-title",
    )


def _whole(story: Story, passes: Sequence[Pass], embedded: Embedded, body: Markup) -> str:
    style = (_HERE / "page.css").read_text(encoding="utf-8")
    script = (_HERE / "page.js").read_text(encoding="utf-8")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(script)}",
            f"style-src {_hash(style)}",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        )
    )
    index = index_of(story.questions, passes, dict(story.findings), embedded)
    data = [f'<script type="text/plain" id="data-index">{index}</script>']
    data += [
        f'<script type="text/plain" id="data-{number}">{chunk}</script>'
        for number, chunk in enumerate(embedded.chunks)
    ]
    title = escape(legible(f"{story.run.run_id}: training report"))
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{title}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            body,
            *data,
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        )
    )


def _hash(text: str) -> str:
    """As a policy names an element by its text."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
