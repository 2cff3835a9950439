"""Reading replies: what models really send, and what nobody should."""

from __future__ import annotations

import json
import re
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts.reply import Decoded, Unreadable, decode_reply, reply_schema


class Inner(msgspec.Struct, frozen=True):
    """A part."""

    text: str


class Reply(msgspec.Struct, frozen=True):
    """What is asked for."""

    edits: tuple[Inner, ...]
    note: str = ""


GOOD = '{"edits": [{"text": "a"}], "note": "n"}'
VALUE = Reply((Inner("a"),), "n")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(GOOD, id="bare"),
        pytest.param(f"```json\n{GOOD}\n```", id="fenced"),
        pytest.param(f'First {{"x": 1}} and {{}} then:\n{GOOD}', id="prose objects before"),
        pytest.param(f'The form is {{"edits": []}}. Mine:\n{GOOD}', id="a smaller one of the form"),
        pytest.param(f"{GOOD}\nThat is {{all}}.", id="prose behind"),
        pytest.param("\\frac{1}{2} " * 500 + GOOD, id="many braces before"),
        pytest.param('{"tool": "' + "x" * 200 + '"}' + GOOD, id="a larger object of another kind"),
        pytest.param(f"[{GOOD}]", id="in an array"),
        pytest.param(f"<think>{{ hm, {{'edits': 1}} }}</think>{GOOD}", id="thinking"),
    ],
)
def test_the_object_is_found(text: str) -> None:
    assert decode_reply(text, Reply) == Decoded(VALUE)


def test_fences_and_braces_inside_strings() -> None:
    inside = '```json\n{"edits": []}\n```\n} { \\ " \''
    text = "```json\n" + json.dumps({"edits": [{"text": inside}]}) + "\n```"
    assert decode_reply(text, Reply) == Decoded(Reply((Inner(inside),)))
    raw_newline = '{"edits": [{"text": "a\nb\tc"}]}'
    assert decode_reply(raw_newline, Reply) == Decoded(Reply((Inner("a\nb\tc"),)))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "no JSON object", id="nothing"),
        pytest.param("I would add a rule { like this }.", "no JSON object", id="prose"),
        pytest.param(GOOD[:-2], "not valid", id="cut off"),
        pytest.param(f'{{"edits": []}} then {GOOD[:-2]}', "not valid", id="decoy, then cut off"),
        pytest.param('{"edits": [{"text": "a" "b"}]}', "not valid", id="badly quoted"),
        pytest.param(
            '{"edits": []} or {"edits": [{"txt": "a"}]}', "does not fit", id="decoy, then misfit"
        ),
        pytest.param('{"edits": 3}', r"`array`, got `int` - at `\$.edits`", id="wrong kind"),
        pytest.param('{"note": "x"}', "missing required field `edits`", id="field missing"),
        pytest.param('[{"text": "a"}]', "missing required field", id="inner objects only"),
        pytest.param('{"result": {"edits": []}}', "missing required field", id="wrapped"),
        pytest.param('{"edits": [], "note": "\\ud800"}', "surrogate", id="half a surrogate"),
        pytest.param('{"edits": [], "n": ' + "1" * 5000 + "}", "not valid", id="huge number"),
        pytest.param('{"edits":' * 5000, "nested too deeply", id="deep"),
    ],
)
def test_the_problem_is_named(text: str, problem: str) -> None:
    read = decode_reply(text, Reply)
    assert isinstance(read, Unreadable)
    assert re.search(problem, read.problem)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{" * 1_000_000, id="braces"),
        pytest.param('{"' * 500_000, id="quotes"),
        pytest.param('{"a":' * 200_000, id="nested"),
        pytest.param('{"a":[' * 150_000, id="nested arrays"),
        pytest.param('{"a":"' * 150_000, id="strings"),
        pytest.param('{"a":"b' + "{'" * 500_000, id="one open string"),
        pytest.param("{ " * 500_000, id="spaces"),
        pytest.param("{" + " " * 1_000_000, id="one brace and spaces"),
        pytest.param('{"a":1}' * 140_000, id="many objects"),
        pytest.param("{}" * 500_000, id="many empty objects"),
        pytest.param('\n{"a\n' * 200_000, id="lines"),
    ],
)
def test_a_megabyte_of_malice_is_read_in_bounded_time(text: str) -> None:
    started = time.process_time()
    assert isinstance(decode_reply(text, Reply), Unreadable)
    assert time.process_time() - started < 10


@given(st.text(max_size=200))
def test_any_text_is_read_without_an_exception(text: str) -> None:
    decode_reply(text, Reply)


sound = st.characters(exclude_categories=["Cs"])
prose = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="{}"))


@given(prose, st.lists(st.text(alphabet=sound, max_size=20), max_size=4), st.booleans(), prose)
def test_what_was_written_is_read(
    before: str, texts: list[str], escaped: bool, behind: str
) -> None:
    value = {"edits": [{"text": text} for text in texts], "note": behind}
    written = before + json.dumps(value, ensure_ascii=escaped) + behind
    assert decode_reply(written, Reply) == Decoded(Reply(tuple(map(Inner, texts)), behind))


def test_the_schema_has_an_object_at_its_root() -> None:
    schema = json.loads(reply_schema(Reply))
    assert schema["type"] == "object"
    assert schema["required"] == ["edits"]
    assert schema["properties"]["edits"]["items"] == {"$ref": "#/$defs/Inner"}
    assert schema["$defs"]["Inner"]["required"] == ["text"]
    assert "$defs" not in json.loads(reply_schema(Inner))
