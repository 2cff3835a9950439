"""What the templates of a proposal state, held against what reads the replies (row P0-1)."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.evolver.consolidate import CompactReply
from actors.evolver.prompt import EditorReply
from actors.evolver.rank import RankReply
from actors.evolver.regions import MAX_NOTE_CHARS
from prompts.reply import Decoded, Unreadable, decode_reply, reply_schema
from prompts.templates import Template, load_templates
from protocol.evolver import Op

unhurried = settings(deadline=None)
AnyReply = EditorReply | RankReply | CompactReply
REPLIES: dict[str, type[AnyReply]] = {
    "evolve_skill": EditorReply,
    "evolve_rank": RankReply,
    "consolidate_appendix": CompactReply,
}
REQUIRED = {"evolve_skill": "edits", "evolve_rank": "selected", "consolidate_appendix": "notes"}
BLOCKS = {
    "evolve_skill": ["Skill:", "Edit budget:", "Growth budget:", "Cases:", "Rejected before:"],
    "evolve_rank": ["Skill:", "Choose:", "Candidates:"],
    "consolidate_appendix": ["Skill:", "Notes at most:", "Notes to compact:"],
}
FILLING = {
    "evolve_skill": {"edit_budget": "2", "growth_chars": "9", "cases": "c", "rejected": "none"},
    "evolve_rank": {"choose": "1", "candidates": '1. delete "a" -> "" (support: 1)'},
    "consolidate_appendix": {"most_notes": "1", "notes": "1. Look."},
}
TEMPLATES = load_templates(REPLIES)

prose = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30)
edits = st.fixed_dictionaries(
    {"op": st.sampled_from(get_args(Op)), "target": prose, "content": prose},
    optional={"support": st.lists(prose, max_size=3), "reason": prose},
)
VALID: dict[str, st.SearchStrategy[dict[str, object]]] = {
    "evolve_skill": st.fixed_dictionaries(
        {"edits": st.lists(edits, max_size=3)},
        optional={
            "suggestions": st.lists(prose, max_size=2),
            "notes": st.lists(prose, max_size=2),
        },
    ),
    "evolve_rank": st.fixed_dictionaries(
        {"selected": st.lists(st.integers(1, 40), min_size=1, max_size=4, unique=True)},
        optional={"reasoning": prose},
    ),
    "consolidate_appendix": st.fixed_dictionaries(
        {"notes": st.lists(prose, min_size=1, max_size=4)}
    ),
}
wrong = st.one_of(st.none(), st.booleans(), st.floats(0.1, 0.9), prose, st.just({"a": 1}))
around = st.sampled_from(["%s", "Sure:\n```json\n%s\n```", "%s\nThat is all.", "```\n%s\n```"])
names = pytest.mark.parametrize("name", sorted(REPLIES))


def example_of(template: Template) -> str:
    """The one line that shows the form of the reply."""
    (line,) = [line for line in template.text.splitlines() if line.startswith('{"')]
    return line


def filled(name: str) -> str:
    return TEMPLATES[name].fill(skill="# S\n\n- Look twice.", **FILLING[name])


@names
@unhurried
@given(data=st.data(), wrapping=around)
def test_p0_1_every_reply_of_the_stated_form_is_read(
    name: str, data: st.DataObject, wrapping: str
) -> None:
    """P0-1."""
    reply = data.draw(VALID[name])
    text = wrapping % json.dumps(reply, ensure_ascii=data.draw(st.booleans()))
    read = decode_reply(text, REPLIES[name])
    assert isinstance(read, Decoded), text
    for field, value in reply.items():
        got = getattr(read.value, field)
        assert len(got) == len(value) if isinstance(value, list) else got == value


@names
@unhurried
@given(data=st.data(), value=wrong)
def test_p0_1_a_wrong_kind_of_value_is_never_read(
    name: str, data: st.DataObject, value: object
) -> None:
    """P0-1: nor is a reply without its required field, or one in a list."""
    reply = dict(data.draw(VALID[name]))
    required = REQUIRED[name]
    whole = json.dumps(reply)
    reply[required] = value
    assert isinstance(decode_reply(json.dumps(reply), REPLIES[name]), Unreadable)
    del reply[required]
    assert isinstance(decode_reply(json.dumps(reply), REPLIES[name]), Unreadable)
    reply[required] = [value]
    if not (name == "consolidate_appendix" and isinstance(value, str)):
        assert isinstance(decode_reply(json.dumps(reply), REPLIES[name]), Unreadable)
    cut = data.draw(st.integers(1, len(whole) - 1))
    assert isinstance(decode_reply(whole[:cut], REPLIES[name]), Unreadable)


@names
def test_p0_1_the_example_fits_after_filling_and_holds_every_field(name: str) -> None:
    """P0-1: even the smallest budget, which the example must keep to."""
    example = example_of(Template(name, filled(name)))
    read = decode_reply(example, REPLIES[name])
    assert isinstance(read, Decoded)
    assert set(json.loads(example)) == set(REPLIES[name].__struct_fields__)
    assert set(json.loads(reply_schema(REPLIES[name]))["properties"]) == set(json.loads(example))


def test_p0_1_the_examples_keep_to_the_smallest_budgets() -> None:
    """P0-1: one place, two candidates; one note."""
    ranked = json.loads(example_of(TEMPLATES["evolve_rank"]))["selected"]
    assert len(ranked) == 1
    assert set(ranked) <= {1, 2}
    assert len(json.loads(example_of(TEMPLATES["consolidate_appendix"]))["notes"]) == 1


@names
def test_a_copied_example_is_known_as_one(name: str) -> None:
    assert TEMPLATES[name].illustration


@names
def test_p0_1_placeholders_are_checked_both_ways(name: str) -> None:
    """P0-1."""
    values = {"skill": "x", **FILLING[name]}
    assert TEMPLATES[name].placeholders == values.keys()
    with pytest.raises(ValueError, match="no value for"):
        TEMPLATES[name].fill(**dict(list(values.items())[1:]))
    with pytest.raises(ValueError, match="no placeholder for"):
        TEMPLATES[name].fill(**values, more="x")


@names
def test_every_block_stands_once_and_tells_which_prompt_it_is(name: str) -> None:
    lines = filled(name).splitlines()
    for block in BLOCKS[name]:
        assert sum(line.startswith(block) for line in lines) == 1, block
    own = BLOCKS[name][-1]
    assert own in lines
    for other in REPLIES:
        if other != name and other != "evolve_skill":
            assert BLOCKS[other][-1] not in lines
    assert lines.index("<<<SKILL") < lines.index("SKILL>>>")


def test_the_limits_that_are_stated_are_the_limits() -> None:
    assert f"at most {MAX_NOTE_CHARS} characters" in TEMPLATES["consolidate_appendix"].text
    assert "`selected` holds the numbers" in TEMPLATES["evolve_rank"].text
