"""What real files hold and is no mistake: one case file for each, in made-up words."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.dataset.fingerprint import dataset_fingerprint
from actors.dataset.preflight import preflight
from actors.dataset.questions import load_questions
from tests.support.question_files import FORMS

CASES = Path(__file__).parent / "cases"
# what every question of a case is read as: text, bodies, gold letter, by id
EXPECTED: dict[str, dict[str, tuple[str, tuple[str, ...], str]]] = {
    "multi_line.jsonl": {
        "701-1": (
            "In which order are they opened?\n(a) The green tin;\n(b) The sack;\n(c) The crate.",
            ("(a)(b)(c).", "(b)(a)(c).", "(c)(a)(b).", "(a)(c)(b)."),
            "C",
        ),
    },
    "non_ascii.jsonl": {
        "702-1": (
            "Which sign hangs over the pâtisserie, ①, ② or ③ £?",
            ("Čaj ñandú.", "Λέσχη.", "茶館.", "Größe è."),
            "D",
        ),
    },
    "gold_in_a_tie.jsonl": {
        "703-1": (
            "Why is the gate shut?",
            ("It rains.", "The goats are out.", "It is dark.", "The goats are out."),
            "D",
        ),
        "703-2": ("Who has the key?", ("Nan.", "The smith.", "The smith.", "The smith."), "B"),
    },
    "tie_of_wrong_options.jsonl": {
        "704-1": ("What is under the cloth?", ("Bread.", "Bread.", "A clock.", "Seeds."), "C"),
    },
    "letters_as_bodies.jsonl": {
        "705-1": ("Which letter is painted on the third boat?", ("A.", "F.", "B.", "K."), "C"),
        "705-2": ("And on the first?", ("B", "A", "D", "C"), "A"),
    },
    "ids_with_dashes.jsonl": {
        "-kQ7_w2rT0z-1": ("How many stairs?", ("7.", "8.", "9.", "10."), "B"),
        "_0aB-cD3eF4-1": ("How many doors?", ("1.", "2.", "3.", "4."), "A"),
    },
    "article_a.jsonl": {
        "706-1": ("What hangs by the door?", ("A coat.", "A broom.", "A bell.", "A hat."), "A"),
        "706-2": ("And by the stove?", ("A coat.", "A broom.", "A bell.", "A hat."), "B"),
        "706-3": ("Who owns it?", ("A. Miller", "B. Hale", "The ferryman", "Nobody"), "A"),
    },
    "double_blanks.jsonl": {
        "707-1": (
            "What  happens after  the bell?",
            ("They run  home.", "They wait.", "They  sing.", "They sleep."),
            "A",
        ),
    },
    "same_text.jsonl": {
        "708-1": (
            "What is it all about, in the main?",
            ("Boats.", "Bees.", "Bells.", "Bread."),
            "A",
        ),
        "709-1": (
            "What is it all about, in the main?",
            ("Boats.", "Bees.", "Bells.", "Bread."),
            "D",
        ),
        "709-2": (
            "What is it all about, in the main?",
            ("Kilns.", "Kites.", "Keys.", "Kings."),
            "B",
        ),
    },
    "two_to_eight_options.jsonl": {
        "710-1": ("Is it wet?", ("Yes.", "No."), "B"),
        "710-2": (
            "Which of the eight is bent?",
            ("1.", "2.", "3.", "4.", "5.", "6.", "7.", "8."),
            "H",
        ),
    },
    "options_as_text.jsonl": {
        "711-1": (
            "What does he do?",
            ("He's asleep.", "He says 'no', twice.", "A dance.", "He rows."),
            "B",
        ),
    },
    "micro_classes.jsonl": {
        "712-1": ("How far is the well?", ("Near.", "Far.", "Beside it.", "Below."), "A"),
        "712-2": ("How long does it burn?", ("A breath.", "An hour.", "A night.", "A week."), "C"),
    },
    "trailing_commas.json": {
        "713-1": (
            'Which list is shown, [1, 2,], {3,} or "none,]"?',
            ("[1, 2,].", "{3,}.", "A row, ]", "None."),
            "B",
        ),
        "713-2": ("What ends the line?", ("A comma.", "A dot.", "A dash.", "A blank."), "A"),
        "714-1": ("What begins it?", ("A.", "One.", "A sign.", "I."), "D"),
    },
}


def test_every_case_file_is_tested() -> None:
    """No case without its expectation."""
    assert {path.name for path in CASES.glob("*.json*")} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_read_as_it_is(name: str) -> None:
    """Nothing is dropped, repaired, merged or cut."""
    found = {q.question_id: (q.question, q.options, q.answer) for q in load_questions(CASES / name)}
    assert found == EXPECTED[name]


# the official form has four options
PAIRS = [
    (n, f) for n in EXPECTED for f in FORMS if (n, f) != ("two_to_eight_options.jsonl", "official")
]


@pytest.mark.parametrize(("name", "form"), PAIRS)
def test_every_form_reads_the_case_alike(tmp_path: Path, name: str, form: str) -> None:
    """The same questions have one fingerprint, whatever they are stored as."""
    questions = load_questions(CASES / name)
    again = load_questions(FORMS[form](tmp_path, questions))
    assert dataset_fingerprint(again) == dataset_fingerprint(questions)


def test_a_micro_class_is_loaded_and_dropped_aloud() -> None:
    """P0-3: its questions stay in the data; pre-flight says why the class does not train."""
    questions = load_questions(CASES / "micro_classes.jsonl")
    rows = preflight(questions, (), questions, eval_min_per_class=2, trainable_min_units=8)
    assert [(row.task_type, row.n_test, row.trainable) for row in rows] == [
        ("Spatial Perception", 1, False),
        ("Temporal Perception", 1, False),
    ]
    assert all("n_units 1 < trainable_min_units 8" in row.reason for row in rows)
