"""Links between the documents lead somewhere."""

from __future__ import annotations

import re

import pytest

from actors.places import ROOT
from tests.docs.test_commands import DOCUMENTS, read

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.*)$", re.MULTILINE)


def anchors(text: str) -> set[str]:
    """As the usual renderers make them of headings."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(text))
    return {heading.strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links(name: str) -> None:
    """Every relative link names a file that is there, and a heading in it."""
    wrong = []
    for found in _LINK.findall(re.sub(r"```.*?```", "", read(name), flags=re.DOTALL)):
        link = found[0] or found[1]
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        text = target.read_text(encoding="utf-8") if anchor and target.is_file() else ""
        if not target.exists() or (anchor and anchor not in anchors(text)):
            wrong.append(link)
    assert not wrong
