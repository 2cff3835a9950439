"""``README.zh.md`` is the README: the same commands, code and links, in the same order."""

from __future__ import annotations

import re

from tests.docs.shell import commands_in, mentions_in
from tests.docs.test_commands import read

_FENCED = re.compile(r"^```(.*?)^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")
_HEADING = re.compile(r"^#+ ", re.MULTILINE)

ENGLISH, CHINESE = read("README.md"), read("README.zh.md")


def test_the_same_commands() -> None:
    """In code blocks, and those that the text mentions."""
    for found in (commands_in, mentions_in):
        here, there = ([each.words for each in found(text)] for text in (ENGLISH, CHINESE))
        assert sorted(there) == sorted(here)
    assert [each.words for each in commands_in(CHINESE)] == [
        each.words for each in commands_in(ENGLISH)
    ]


def test_the_same_code() -> None:
    """Configurations, tables and pictures in fences, letter for letter."""
    assert _FENCED.findall(CHINESE) == _FENCED.findall(ENGLISH)


def test_the_same_parts() -> None:
    """Headings, table rows, links, and every name that stands in code."""
    prose = [_FENCED.sub("", text) for text in (ENGLISH, CHINESE)]
    here, there = prose
    assert len(_HEADING.findall(there)) == len(_HEADING.findall(here))
    assert there.count("\n| ") == here.count("\n| ")
    others = {"README.md", "README.zh.md", "docs/faq.md"}  # each names the other
    assert set(_LINK.findall(there)) - others == set(_LINK.findall(here)) - others
    assert set(_CODE.findall(there)) == set(_CODE.findall(here))
