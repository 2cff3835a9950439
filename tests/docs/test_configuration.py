"""``docs/configuration.md`` says what the sources say."""

from __future__ import annotations

from actors.config import load_config
from docs.make_configuration import DEFAULTS, PAGE, configuration_page, knobs_of
from protocol.settings import Config


def test_the_page_is_current() -> None:
    """The committed page is what the generator makes now."""
    made = configuration_page(DEFAULTS.read_text(encoding="utf-8"))
    assert PAGE.read_text(encoding="utf-8") == made, "run: python -m docs.make_configuration"


def test_every_knob_is_on_it() -> None:
    """No key without its row, and none without a word about it."""
    sections = knobs_of(DEFAULTS.read_text(encoding="utf-8"))
    assert set(sections) == set(Config.__struct_fields__)
    config = load_config(None)
    for name, (_, knobs) in sections.items():
        assert {knob.name for knob in knobs} == set(getattr(config, name).__struct_fields__)
        assert all(knob.meaning.strip() for knob in knobs)


def test_comments_that_go_on() -> None:
    """Over lines, before a key, and values over several lines."""
    text = (
        "part:   # what it is\n"
        "  # Before it.\n"
        "  one: 1    # first\n"
        "            # and more\n"
        "  many:     # a list\n"
        "    - {a: 1}\n"
        "    - {b: '#'}\n"
    )
    said, (one, many) = knobs_of(text)["part"]
    assert said == "what it is"
    assert (one.default, one.meaning) == ("1", "first and more. Before it.")
    assert many.default == "- {a: 1} - {b: '#'}"
