"""Engine prompts: loaded whole or not at all, filled completely or not at all.

A placeholder is ``{{name}}``; single braces are left alone, prompts are full of JSON.
Row P0-1: a missing template is an error at start that names every missing file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

__all__ = ["PROMPTS_DIR", "Template", "load_templates", "texts_in"]

PROMPTS_DIR = Path(__file__).parent
_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")


class Template(msgspec.Struct, frozen=True):
    """One engine prompt."""

    name: str
    text: str

    @property
    def placeholders(self) -> frozenset[str]:
        """The names that ``fill`` must be given."""
        return frozenset(_PLACEHOLDER.findall(self.text))

    @property
    def illustration(self) -> frozenset[str]:
        """The texts of the example reply: a model that sends one back has said nothing.

        Small models do: Qwen2.5-Coder-1.5B repeated an example finding in three of three
        diagnoses, and an example edit word for word.
        """
        texts: set[str] = set()
        for line in self.text.splitlines():
            if line.startswith("{") and not line.startswith("{{"):
                texts |= texts_in(json.loads(line))
        return frozenset(text for text in texts if " " in text)

    def fill(self, **values: str) -> str:
        """The prompt with every placeholder replaced once (values are never re-read).

        Raises ValueError naming placeholders without a value and values without a placeholder.
        """
        lacking = sorted(self.placeholders - values.keys())
        unused = sorted(values.keys() - self.placeholders)
        if lacking or unused:
            raise ValueError(
                f"prompts/{self.name}.md: no value for {lacking}, no placeholder for {unused}"
            )
        return _PLACEHOLDER.sub(lambda match: values[match.group(1)], self.text)


def texts_in(value: object) -> set[str]:
    """Every string among the values of a decoded JSON value, without blanks around it."""
    if isinstance(value, str):
        return {value.strip()}
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return {text for item in value for text in texts_in(item)}
    return set()


def load_templates(names: Iterable[str], folder: Path = PROMPTS_DIR) -> Mapping[str, Template]:
    """The named templates (file stems).

    Raises FileNotFoundError naming every missing or empty file.
    """
    found: dict[str, Template] = {}
    missing: list[str] = []
    for name in names:
        path = folder / f"{name}.md"
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if text.strip():
            found[name] = Template(name, text)
        else:
            missing.append(str(path))
    if missing:
        raise FileNotFoundError(f"engine prompts missing or empty: {', '.join(missing)}")
    return found
