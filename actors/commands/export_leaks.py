"""What a text to be published gives away of the benchmark. Pure.

The editor is held to this for what it was shown; here every text is held against every question.
Most pairs are sorted out by a cheap look first: letters and digits of a passage in a row, which
whatever ``find_leak`` finds has in common with the text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

import msgspec

from actors.evolver.leak import MIN_WORDS, Exposed, find_leak, sentences_with_gold

__all__ = ["Quotation", "quotations"]

_QUESTION_WORDS = 8  # a shorter question ("What happens first?") is everybody's
_NOBODY = "\ue000nobody\ue000"
"""An id that no text holds: what is looked for is not the id."""


class Quotation(msgspec.Struct, frozen=True):
    """What a document gives away. seeded: the seed's text says it already."""

    document: str
    what: str
    seeded: bool


def quotations(
    texts: Mapping[str, str], seeds: Mapping[str, str], exposed: Sequence[Exposed]
) -> tuple[Quotation, ...]:
    """Everything that the texts give away, ordered by document.

    texts: by name. seeds: what the documents were before training, by name; a text that has none
    had nothing. exposed: every question, with what was read about it. A question id counts as the
    text's own even where the seed has it.
    """
    cores = {name: _core(text) for name, text in texts.items()}
    found = {}
    for item in exposed:
        passages = _passages(item)
        for name, core in cores.items():
            if not any(passage in core for passage in passages):
                continue
            for what in _said(texts[name], item, ""):
                seeded = what not in _said(texts[name], item, seeds.get(name, ""))
                found[name, what] = Quotation(name, what, seeded)
    return tuple(found[key] for key in sorted(found))


def _said(text: str, item: Exposed, known: str) -> list[str]:
    """What the text gives away of one question; ``find_leak`` names one thing at a time."""
    question = item.question
    nameless = msgspec.structs.replace(question, question_id=_NOBODY)
    only_id = msgspec.structs.replace(question, options=("",), answer="A")
    looks = [
        (Exposed(nameless, item.evidence), ""),
        (Exposed(only_id, ()), ""),
    ]
    if len(question.question.split()) >= _QUESTION_WORDS:
        stem = msgspec.structs.replace(nameless, options=(question.question,), answer="A")
        looks.append((Exposed(stem, ()), f"it quotes the question {question.question_id}"))
    return [
        name or what.replace(_NOBODY, question.question_id)
        for look, name in looks
        if (what := find_leak(text, (look,), known)) is not None
    ]


def _passages(item: Exposed) -> tuple[str, ...]:
    """The cores of what must not be quoted; of an option or a sentence four words are too few
    for fewer than four characters."""
    question = item.question
    longer = (question.question, *question.options, *sentences_with_gold(item))
    cores = [core for core in map(_core, longer) if len(core) >= MIN_WORDS]
    return (_core(question.question_id), *cores)


def _core(text: str) -> str:
    """Letters and digits in a row, folded."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in folded if character.isalnum())
