"""Ways of going wrong: each writes a trajectory for a question, or says that it does not fit.

Every function plants one fault and nothing else; what is planted is told by ``build``. The
letter that is submitted is that of a wrong option.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from protocol.dataset import Question
from protocol.rollout import Step
from tests.diagnoser.cases.notes import Notes, Script, letter_saying, other_letter

__all__ = ["Scenario", "Went"]

Went = tuple[str, tuple[Step, ...]]
"""The letter that was submitted, and the trajectory."""
Scenario = Callable[[Question, Notes], Went | None]

_NUMBERS = (
    *("zero", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
_ROW = re.compile(r"How many (?P<things>.+) are in the row that (?P<who>\w+) sets out first\?")


def first_number(question: Question, notes: Notes) -> Went | None:
    """Stops at the first of two numbers, although an event that brings more was listed."""
    asked = re.search(r"How many (.+) does (\w+) bring in the whole video\?", question.question)
    if asked is None:
        return None
    things, who = asked.groups()
    row, more = notes.first(3, f"{things} form a row"), notes.first(2, f"{who} brings more")
    if row is None or more is None:
        return None
    number = row.values("objects")[0].split()[0]
    letter = letter_saying(question, number)
    if letter is None:
        return None
    script = Script(notes)
    script.search(things, [notes.parent(row), row], f"I look for the {things}.")
    script.view(notes.parent(more), f"The hits are about {things} in a row. I look at this scene.")
    script.view(row, "The key frame of the row should have the number.")
    thought = f"The frame says {number} {things}, so there are {number}."
    return letter, script.submit(letter, 0.85, f"{row.node_id}: {number} {things}", thought)


def spoken_number(question: Question, notes: Notes) -> Went | None:
    """Prefers the number that somebody says to the one in the frame that it opened."""
    asked = _ROW.search(question.question)
    row = None if asked is None else notes.first(3, f"{asked['things']} form a row")
    if asked is None or row is None:
        return None
    word = re.search(rf"all (\w+) {asked['things']}", row.raw.subtitle)
    if word is None or word[1] not in _NUMBERS:
        return None
    spoken, shown = str(_NUMBERS.index(word[1])), row.values("objects")[0]
    letter = letter_saying(question, spoken)
    if letter is None:
        return None
    event = notes.parent(row)
    script = Script(notes)
    script.search(asked["things"], [event, row], f"I look for the {asked['things']}.")
    script.view(event, "The event comes first.")
    script.view(row, f"{asked['who']} says {word[1]}. I check the frame.")
    thought = (
        f"The frame has {shown}, but {asked['who']} says {word[1]} and put them there, "
        f"so it must be {spoken}."
    )
    return letter, script.submit(letter, 0.8, f"{event.node_id}: all {word[1]}", thought)


def list_from_the_top(question: Question, notes: Notes) -> Went | None:
    """Takes the top entry of a list for the first job."""
    if "done first" not in question.question:
        return None
    board = notes.first(3, "A chalk list")
    if board is None:
        return None
    top = board.values("visible_text")[0]
    letter = letter_saying(question, top)
    if letter is None:
        return None
    script = Script(notes)
    script.search("chalk list", [board, notes.parent(board)], "I look for the list of jobs.")
    script.view(board, "This frame shows the list.")
    thought = f"The list begins with {top}, so that is the job that is done first."
    return letter, script.submit(letter, 0.9, f"{board.node_id}: {top}", thought)


def bells_by_guess(question: Question, notes: Notes) -> Went | None:
    """Takes a bell for as many minutes as fit an option."""
    if "How many minutes are left" not in question.question:
        return None
    said = notes.first(3, " bells. ") or notes.first(3, " bells.")
    word = None if said is None else re.search(r"in (\w+) bells", said.raw.subtitle)
    if said is None or word is None or word[1] not in _NUMBERS:
        return None
    bells = _NUMBERS.index(word[1])
    minutes = next((m for m in (15, 10, 5) if letter_saying(question, f"{m * bells} minutes")), 0)
    letter = letter_saying(question, f"{minutes * bells} minutes")
    if letter is None:
        return None
    script = Script(notes)
    script.subtitles("bells", said, "The question is about what is said.")
    script.view(notes.parent(said), "I read the whole event.")
    thought = f"{word[1]} bells. If a bell is {minutes} minutes, that makes {minutes * bells}."
    return letter, script.submit(letter, 0.6, f"{said.node_id}: in {word[1]} bells", thought)


def first_coat(question: Question, notes: Notes) -> Went | None:
    """Answers with the first coat of paint and never speaks of the last frame it opened."""
    asked = re.search(r"What colour is the (.+) at the end of the video\?", question.question)
    if asked is None:
        return None
    paint = notes.first(2, f"paints the {asked[1]}")
    last = notes.first(3, f"A last look at the {asked[1]}")
    coat = None if paint is None else re.search(r"gets a coat of (\w+)", paint.summary)
    letter = None if coat is None else letter_saying(question, coat[1])
    if paint is None or last is None or coat is None or letter is None:
        return None
    script = Script(notes)
    script.search(asked[1], [paint, last], f"I look for the {asked[1]}.")
    script.view(last, "I open both hits.")
    script.view(paint, "Now the event in which it is painted.")
    thought = f"The event says that the {asked[1]} gets a coat of {coat[1]}, so it is {coat[1]}."
    return letter, script.submit(letter, 0.85, f"{paint.node_id}: a coat of {coat[1]}", thought)


def wrong_owner(question: Question, notes: Notes) -> Went | None:
    """Reads the satchel of one person as that of the other."""
    asked = re.search(r"What pattern does (\w+)'s satchel have\?", question.question)
    frame = None if asked is None else notes.first(3, f"{asked[1]}'s satchel is")
    if asked is None or frame is None:
        return None
    patterns = dict(re.findall(r"(\w+)'s satchel is (\w+)", frame.summary))
    other = next((pattern for who, pattern in patterns.items() if who != asked[1]), "")
    letter = letter_saying(question, other)
    if letter is None:
        return None
    script = Script(notes)
    script.search(f"{asked[1]} satchel", [frame, notes.parent(frame)], "I look for the satchel.")
    script.view(frame, "This frame shows the satchels.")
    thought = f"The card says that {asked[1]}'s satchel is {other}."
    return letter, script.submit(letter, 0.9, f"{frame.node_id}: {other}", thought)


def corrected_spelling(question: Question, notes: Notes) -> Went | None:
    """Prefers the name as people say it to the letters on the board."""
    if "board over the entrance spelled" not in question.question:
        return None
    board = notes.first(3, "A painted board hangs over the entrance")
    said = None if board is None else re.search(r"Is this (.+?)\?", board.raw.subtitle)
    letter = None if said is None else letter_saying(question, said[1])
    if board is None or said is None or letter is None:
        return None
    written = board.values("visible_text")[0]
    script = Script(notes)
    script.search("board entrance", [board, notes.parent(board)], "I look for the board.")
    script.view(board, "The key frame has the text.")
    thought = (
        f"The board has {written}, but the place is called {said[1]} by those who are there; "
        f"I take {said[1].upper()}."
    )
    return letter, script.submit(letter, 0.75, f"{board.node_id}: Is this {said[1]}?", thought)


def half_a_notice(question: Question, notes: Notes) -> Went | None:
    """Reads the beginning of a notice and never opens the frame beside it that has the end."""
    if question.question.strip() != "What does the whole notice say?":
        return None
    begins, ends = notes.first(3, " …"), notes.first(3, "… ")
    if begins is None or ends is None or begins.node_id == ends.node_id:
        return None
    event = notes.parent(begins)
    if ends.node_id not in event.raw.children_ids:
        return None
    text = begins.values("visible_text")[0]
    letter = other_letter(question)
    option = question.options[ord(letter) - ord("A")]
    script = Script(notes)
    script.search("notice", [begins], "I look for the notice.")
    script.view(event, "I open its event.")
    script.view(begins, "The key frame should have the text.")
    thought = f"The notice begins {text}. {option} sounds most natural."
    return letter, script.submit(letter, 0.6, f"{begins.node_id}: {text}", thought)


def at_once(question: Question, notes: Notes) -> Went | None:
    """Submits without a look."""
    letter = other_letter(question)
    option = question.options[ord(letter) - ord("A")]
    thought = f"The scenes of the top level suggest it: {option}"
    return letter, Script(notes).submit(letter, 0.75, "top level", thought)


def made_up(question: Question, notes: Notes) -> Went | None:
    """Claims to read in two frames what neither of them says."""
    asked = re.search(r"What colour is the (\w+) that (\w+) wears\?", question.question)
    if asked is None:
        return None
    thing, who = asked.groups()
    frames = [node for node in notes.all(3, f"{who}'s satchel") if thing not in node.summary]
    event = notes.first(2, f"{who} meets") or notes.first(2, f"meets {who}")
    if not frames or event is None:
        return None
    frame, later = frames[0], notes.first(3, "step back from the chalkboard")
    letter = other_letter(question)
    colour = question.options[ord(letter) - ord("A")].lower()
    if later is None:
        return None
    script = Script(notes)
    script.view(frame, f"A frame with {who} will show the {thing}.")
    script.view(later, f"It says that {who} has a {colour} {thing}. I check another frame.")
    thought = f"Both frames say that {who} wears a {colour} {thing}."
    evidence = f"{frame.node_id}: a {colour} {thing}; {later.node_id}: the {colour} {thing} again"
    return letter, script.submit(letter, 0.9, evidence, thought)


def misread_number(question: Question, notes: Notes) -> Went | None:
    """Reads another number than the card has."""
    asked = _ROW.search(question.question)
    row = None if asked is None else notes.first(3, f"{asked['things']} form a row")
    if asked is None or row is None:
        return None
    letter = other_letter(question)
    number = question.options[ord(letter) - ord("A")]
    script = Script(notes)
    script.search(asked["things"], [notes.parent(row), row], f"I look for the {asked['things']}.")
    script.view(row, "This frame shows the row.")
    thought = f"The card gives {number} {asked['things']} in the row."
    return letter, script.submit(letter, 0.9, f"{row.node_id}: the row", thought)


def nothing_found(question: Question, notes: Notes) -> Went | None:
    """Searches for words that stand nowhere, and guesses."""
    letter = other_letter(question)
    script = Script(notes)
    script.search("overview of everything", [], "I look for what the video is about.")
    script.search("answer to the question", [], "Nothing. I try other words.")
    return letter, script.submit(letter, 0.3, "none", "Nothing was found; this one is possible.")


def unknown_word(question: Question, notes: Notes) -> Went | None:
    """Opens everything about an act whose name nobody explains, and guesses."""
    asked = re.search(r"What does (\w+) do with the (.+)\?", question.question)
    if asked is None:
        return None
    who, thing = asked.groups()
    act = re.compile(rf"{who} (?:velks|tessles|orms) the {thing}")
    event = next((n for n in notes.all(2, thing) if act.search(n.summary)), None)
    if event is None:
        return None
    letter = other_letter(question)
    option = question.options[ord(letter) - ord("A")]
    word = event.summary.split()[1]
    script = Script(notes)
    script.search(f"{who} {thing}", [event], f"I look for {who} and the {thing}.")
    script.view(event, "The event names both.")
    for child in notes.children(event):
        script.view(child, f"What does {word} mean? I look at the key frame.")
    thought = f"No frame explains {word}. I guess: {option}"
    return letter, script.submit(letter, 0.35, f"{event.node_id}: {word}", thought)


def closed_close_view(question: Question, notes: Notes) -> Went | None:
    """Guesses a material, although a close view was listed that it never opened."""
    asked = re.search(r"What is the tag on the (.+) made of\?", question.question)
    close = None if asked is None else notes.first(3, f"A close view of the {asked[1]}")
    if asked is None or close is None:
        return None
    event = notes.parent(close)
    frames = [child for child in notes.children(event) if child.node_id != close.node_id]
    letter = other_letter(question)
    option = question.options[ord(letter) - ord("A")].lower()
    script = Script(notes)
    script.search(f"tag {asked[1]}", [event], "I look for the tag.")
    script.view(event, "I open the event.")
    for frame in frames:
        script.view(frame, f"A key frame with the {asked[1]}.")
    thought = f"The material is not told. Tags are often made of {option}."
    return letter, script.submit(letter, 0.5, f"{event.node_id}: the {asked[1]}", thought)


def not_the_next(question: Question, notes: Notes) -> Went | None:
    """Reads the events in order and takes the last one for the next one."""
    asked = re.search(r"What happens directly after this: (.+)\?", question.question)
    event = None if asked is None else notes.first(2, f"{asked[1]}.")
    if asked is None or event is None:
        return None
    scene = notes.parent(event)
    events = notes.children(scene)
    at = [node.node_id for node in events].index(event.node_id)
    later = [(n, letter_saying(question, n.summary.split(".")[0])) for n in events[at + 2 :]]
    found = next(((node, letter) for node, letter in later if letter is not None), None)
    if found is None:
        return None
    node, letter = found
    script = Script(notes)
    script.search(asked[1], [event], "I look for the event of the question.")
    script.view(scene, "Its scene lists the events around it.")
    thought = (
        f"The events of the scene are {', then '.join(n.summary.split('.')[0] for n in events)}. "
        f"So after it comes: {node.summary.split('.')[0]}."
    )
    return letter, script.submit(letter, 0.8, f"{scene.node_id}: the list of events", thought)
