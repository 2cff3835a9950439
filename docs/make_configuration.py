"""Makes ``docs/configuration.md`` of ``config/default.yaml`` and ``protocol/settings.py``.

    python -m docs.make_configuration

What a knob is for stands in the comments of the one, what it may be in the other, and what may
change when a run is resumed in ``actors/config.py``: the page repeats them and adds nothing. A
test holds the committed page against these sources.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec import inspect

from actors.config import FREE_ON_RESUME
from actors.places import ROOT
from protocol.settings import Config, Endpoint, RoleSettings

__all__ = ["PAGE", "Knob", "configuration_page", "knobs_of"]

PAGE = ROOT / "docs" / "configuration.md"
DEFAULTS = ROOT / "config" / "default.yaml"

_HEAD = """\
# Configuration

A run's own file names only what differs from [`config/default.yaml`](../config/default.yaml);
`--set KEY=VALUE` goes on top, such as `--set trainer.epochs=5`. An unknown key, a value of the
wrong kind and a key that is given twice are refused before anything is written, with file and key.
`bin/train my.yaml --check` shows what differs from the defaults.

Units stand in the names: `_s` seconds, `_chars` characters, `_share` a part of 1, `_mb` megabytes.
*Resume* says whether `--resume` lets a key differ without a word (free), or only with
`--accept-change KEY` (fixed), because it decides what a run finds.

This page is made by `python -m docs.make_configuration`; change its sources, not the page.
"""
_SECTION = re.compile(r"^(\w+):\s*(?:#\s*(.*))?$")
_KEY = re.compile(r"^  (\w+):\s*(.*)$")
_COMMENT = re.compile(r"(?:^|\s+)#\s?(.*)$")
_ROWS = re.compile(r"\s*\((?:rows? [^)]*|[A-Z]+\.md)\)")
_WIDE = 40


class Knob(msgspec.Struct, frozen=True, kw_only=True):
    """One key of a section. default: as the file has it.

    said: the comment behind it, on this and further lines. before: comments above it.
    """

    name: str
    default: str
    said: str
    before: str

    @property
    def meaning(self) -> str:
        """Its comments as one text."""
        return " ".join(filter(None, [_sentence(self.said), self.before]))


def knobs_of(text: str) -> Mapping[str, tuple[str, tuple[Knob, ...]]]:
    """The sections of ``default.yaml``: the comment behind a section's name, and its keys."""
    found: dict[str, tuple[str, list[Knob]]] = {}
    section = ""
    before: list[str] = []
    for line in text.splitlines():
        comment = _COMMENT.search(line)
        said = comment[1].strip() if comment else ""
        bare = line[: comment.start()].rstrip() if comment else line.rstrip()
        if named := _SECTION.match(line):
            section, before = named[1], []
            found[section] = (said, [])
        elif not section or not line.strip():
            continue
        elif key := _KEY.match(bare):
            knob = Knob(name=key[1], default=key[2], said=said, before=" ".join(before))
            found[section][1].append(knob)
            before = []
        elif not bare and line.startswith("  #"):  # a comment of its own, about the next key
            before.append(said)
        else:
            _go_on(found[section][1], bare.strip(), said)
    return {name: (said, tuple(knobs)) for name, (said, knobs) in found.items()}


def _go_on(knobs: list[Knob], more: str, said: str) -> None:
    """A further line of the last key: of its value, or of its comment."""
    last = knobs[-1]
    knobs[-1] = msgspec.structs.replace(
        last,
        default=" ".join(filter(None, [last.default, more])),
        said=" ".join(filter(None, [last.said, said])),
    )


def _sentence(said: str) -> str:
    return said and (said if said.endswith((".", ":")) else f"{said}.")


def configuration_page(defaults: str) -> str:
    """The page as Markdown. defaults: the text of ``default.yaml``."""
    sections = knobs_of(defaults)
    lines = [_HEAD.rstrip()]
    for field in msgspec.structs.fields(Config):
        said, knobs = sections[field.name]
        types = {each.name: each.type for each in _fields(field.type)}
        lacking = types.keys() ^ {knob.name for knob in knobs}
        assert not lacking, f"{field.name}: only in one of the two sources: {sorted(lacking)}"
        lines += [f"\n## `{field.name}`\n", _about(field.type, said)]
        lines += _table(field.name, knobs, types)
        if field.name == "llm":
            lines += _parts()
    return "\n".join(lines).rstrip() + "\n"


def _fields(struct: object) -> tuple[inspect.Field, ...]:
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return info.fields


def _about(struct: object, said: str) -> str:
    """The section's docstring, or the comment behind its name where that only names fields."""
    text = _plain(struct.__doc__ or "", [field.name for field in _fields(struct)])
    comment = f"{said[0].upper()}{_sentence(said)[1:]}\n\n" if said else ""
    return comment + text if text.startswith("- ") else text


def _plain(docstring: str, names: Sequence[str]) -> str:
    """A docstring as Markdown: what it says of a field by name as an item of a list."""
    name = "|".join(re.escape(each) for each in (*names, "edit_budget_*"))
    listed = re.compile(rf"(?:^|(?<=[.;] ))((?:{name})(?:, (?:{name}))*): ")
    paragraphs: list[str] = []
    items: list[str] = []
    for paragraph in re.split(r"\n\s*\n", _ROWS.sub("", docstring).replace("``", "`").strip()):
        text, *rest = listed.split(" ".join(paragraph.split()))
        paragraphs += [text.strip()] if text.strip() else []
        for named, meaning in zip(rest[::2], rest[1::2], strict=True):
            quoted = ", ".join(f"`{each}`" for each in named.split(", "))
            items.append(f"- {quoted}: {_sentence(meaning.strip().removesuffix(';'))}")
    blocks = [*paragraphs, "\n".join(items)]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _table(
    section: str, knobs: tuple[Knob, ...], types: Mapping[str, inspect.Type]
) -> Iterator[str]:
    yield "| key | default | may be | resume | what for |"
    yield "| --- | --- | --- | --- | --- |"
    for knob in knobs:
        kind = _words(types[knob.name])
        yield _row(
            f"`{knob.name}`",
            _shown(knob.default),
            kind,
            _on_resume(f"{section}.{knob.name}"),
            knob.meaning,
        )


def _parts() -> Iterator[str]:
    """The two structs that stand inside the section ``llm``."""
    parts = (("One of `llm.endpoints`", Endpoint), ("A role's sampling", RoleSettings))
    for title, struct in parts:
        yield f"\n### {title}\n"
        yield _plain(struct.__doc__ or "", [field.name for field in _fields(struct)])
        yield "| key | default | may be |"
        yield "| --- | --- | --- |"
        for field in _fields(struct):
            yield _row(f"`{field.name}`", _default(field), _words(field.type))


def _default(field: inspect.Field) -> str:
    if field.required:
        return "must be given"
    value = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
    return f"`{msgspec.json.encode(value).decode()}`"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _shown(default: str) -> str:
    return f"`{default}`" if len(default) <= _WIDE else "see the file"


def _on_resume(key: str) -> str:
    if key == "llm.endpoints":
        return "fixed: models, roles, `json_output`, `extra_body`"
    return "free" if key.startswith(FREE_ON_RESUME) else "fixed"


def _words(kind: inspect.Type) -> str:
    """What a value may be, in words."""
    if isinstance(kind, inspect.UnionType):
        return " or ".join(_words(each) for each in kind.types)
    if isinstance(kind, inspect.LiteralType):
        return " | ".join(f"`{value}`" for value in kind.values)
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        name = "whole number" if isinstance(kind, inspect.IntType) else "number"
        return f"{name}{_range(kind)}"
    if isinstance(kind, inspect.StrType):
        return f"text like `{kind.pattern}`" if kind.pattern else "text"
    if isinstance(kind, inspect.VarTupleType):
        return f"list of {_words(kind.item_type)}"
    if isinstance(kind, inspect.StructType):
        return {"Endpoint": "endpoints, see below", "RoleSettings": "sampling, see below"}[
            kind.cls.__name__
        ]
    simple = {inspect.BoolType: "`true` | `false`", inspect.NoneType: "`null`"}
    return simple.get(type(kind), "mapping")


def _range(kind: inspect.IntType | inspect.FloatType) -> str:
    bounds = [
        f"{sign} {value:g}"
        for sign, value in ((">", kind.gt), (">=", kind.ge), ("<", kind.lt), ("<=", kind.le))
        if value is not None
    ]
    return f" {', '.join(bounds)}" if bounds else ""


def main() -> None:
    """Write the page."""
    PAGE.write_text(configuration_page(DEFAULTS.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")


if __name__ == "__main__":
    main()
