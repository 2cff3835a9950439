"""A report's page, taken apart as a browser takes it; and a workspace whose texts are hostile."""

from __future__ import annotations

import re
import zlib
from base64 import b64decode, b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import msgspec

from protocol.gate import Look
from protocol.rows import (
    AttemptRow,
    DecisionRow,
    DiagnosisRow,
    EpochRow,
    OutcomeRow,
    RejectedRow,
    StepRow,
    TraceRow,
)
from tests.commands.house import CLASS, add_rows, edit_row, row

__all__ = ["HOSTILE", "Page", "make_hostile", "parse", "policy_hash", "unpacked"]

HOSTILE = (
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "\"'><svg/onload=window.pwned=1>",
    "</style></pre></textarea><iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "<a href='javascript:window.pwned=1'>press</a><!-- --!><![CDATA[",
    "&lt;b&gt; \x00\x1b[31m \u202egnp.exe \ud7ff\U0001f600 ]]> ${7*7} {{7*7}}",
)


class Page(HTMLParser):
    """elements: (name, attributes) of all; words: what is to be read, without script and style."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self.words = ""
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside = tag
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)
        elif self._inside == "style":
            self.styles.append(data)
        else:
            self.words += data

    def having(self, attribute: str) -> list[str]:
        """Every value of an attribute."""
        return [held[attribute] or "" for _, held in self.elements if attribute in held]


def parse(text: str) -> Page:
    """The page's elements and words."""
    page = Page()
    page.feed(text)
    page.close()
    return page


def policy_hash(text: str) -> str:
    """As a content security policy names a script or a style sheet."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def unpacked(text: str, name: str) -> object:
    """One of the page's data blocks."""
    found = re.search(f'id="{name}">([^<]*)<', text)
    assert found is not None, name
    return msgspec.json.decode(zlib.decompress(b64decode(found[1])))


def make_hostile(workspace: Path) -> None:
    """Put hostile text wherever a row takes text; and a test with its looks."""
    evil = "\n".join(HOSTILE)
    key = "e3/counting-problem/s1"
    looks = (
        Look(units=4, wins=3, losses=0, ties=1, missing=0, e=3.375),
        Look(units=8, wins=6, losses=1, ties=1, missing=0, e=5.6953125),
    )
    add_rows(
        workspace,
        row(
            DecisionRow,
            run_key="e2/counting-problem/s1",
            epoch=2,
            step=1,
            task_type=CLASS,
            verdict="accept",
            reason="core",
            alpha=0.2,
            n_units=8,
            evaluated=8,
            wins=6,
            losses=1,
            ties=1,
            e_value=5.6953125,
            p_gate=0.17,
            looks=msgspec.json.encode(looks).decode(),
            stages="[]",
            in_sample=True,
        ),
        row(StepRow, run_key=key, epoch=3, step=1, task_type=evil, result=evil, skill_before=evil),
        row(
            DecisionRow,
            run_key=key,
            epoch=3,
            step=1,
            task_type=evil,
            verdict=evil,
            reason=evil,
            looks=evil,
            stages=evil,
        ),
        edit_row(
            f"{key}/proposal",
            0,
            evil,
            target=evil,
            reason=evil,
            support=msgspec.json.encode(["001-1", *HOSTILE]).decode(),
            status="no_match",
            detail=evil,
            op=evil,
            document=evil,
        ),
        row(RejectedRow, run_key=key, edits=evil, notes=evil),
        row(EpochRow, epoch=3, tests=1, accepted=0, sum_alpha=0.2),
        row(AttemptRow, role="search", endpoint=evil, outcome=evil, detail=evil),
        row(AttemptRow, role="judge", endpoint="j", outcome="ok", call="other"),
        row(
            OutcomeRow,
            run_key=f"{key}/rollout",
            question_id="001-2",
            task_type=CLASS,
            outcome="wrong",
            letter=evil,
            missing_kind=None,
            stop="submitted",
            detail=evil,
        ),
        row(
            OutcomeRow,
            run_key=f"e9/{evil}",
            question_id=evil,
            video_id=evil,
            task_type=evil,
            outcome="missing",
            missing_kind=evil,
            detail=evil,
        ),
        row(
            DiagnosisRow,
            run_key=f"{key}/rollout",
            question_id="001-2",
            error_type=evil,
            subtype=evil,
            cause=evil,
            finding=evil,
            rule=evil,
        ),
        *(
            row(
                TraceRow,
                run_key=f"{key}/rollout",
                question_id="001-2",
                step=number,
                tool=None if number == 2 else evil,
                thought=evil,
                arguments=evil,
                observation=evil,
                raw=evil,
                notice=evil,
                flags=evil if number == 1 else '["cut"]',
            )
            for number in (1, 2)
        ),
    )
