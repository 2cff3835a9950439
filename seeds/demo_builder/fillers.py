"""Lines that read well and change nothing: what a mediocre editor would add."""

from __future__ import annotations

from actors.twin.world import Filler

__all__ = ["FILLERS"]

_LINES = {
    "Action Recognition": (
        "Name the person who acts before naming the act.",
        "Prefer the wording of the event description to your own.",
        "If two options describe the same movement, look for the difference in the object.",
        "Write the thought as one short sentence about the action.",
        "Use the name of the thing as the search query.",
        "Check that the person in the option is the person in the question.",
        "An action at the edge of a scene still belongs to that scene.",
        "State the evidence as a node id and a quotation.",
        "Read all four options once before the first tool call.",
    ),
    "Counting Problem": (
        "Say what is counted in your own words before you begin.",
        "Write numbers as digits in the evidence.",
        "Use the plural of the counted thing as a query.",
        "Check that the answer's letter belongs to the number you mean.",
        "Mention the unit that is counted in the reasoning.",
        "Look at the options to see how far apart the numbers are.",
        "A table or a shelf is not part of what is counted.",
        "Keep the thought of each step short.",
        "Give the node id of the frame that shows the number.",
    ),
    "Temporal Reasoning": (
        "Note the start second of every event that you cite.",
        "Read the question twice when it holds words like after or until.",
        "Put the events of the question into one sentence.",
        "Quote the subtitle line that speaks of time.",
        "Search the subtitles for the name of the occasion.",
        "Compare the options with each other before choosing.",
        "A scene that starts later in the tree starts later in the video.",
        "Give the time range of the node as evidence.",
        "Say in the thought which moment you are looking for.",
    ),
    "Object Recognition": (
        "Use the option's noun as a search query.",
        "Name the place of the object in the evidence.",
        "Describe the object by its use if its name is rare.",
        "Tell tools from furniture when you compare the options.",
        "Write the noun exactly as the card has it.",
        "Say who holds the object, if anybody does.",
        "Look once more at the question before you submit.",
        "An object may be named in the singular or the plural.",
        "Keep a short list of the nouns you have met.",
    ),
    "Attribute Perception": (
        "Name the attribute that is asked for: colour, pattern or material.",
        "Write the attribute and the thing side by side in the thought.",
        "Use the thing, not the colour, as a search query.",
        "Quote the words of the card in the evidence.",
        "Grey and white are different answers.",
        "Say in which scene you saw the attribute.",
        "Leave out options of another kind of attribute.",
        "Check the letter of your option before submitting.",
        "One clear card is better evidence than two vague ones.",
    ),
    "OCR Problems": (
        "Put the text in quotation marks in the evidence.",
        "Capital letters in the options follow the sign.",
        "Say where the text is: a board, a door, a wall or a box.",
        "Use the word board or notice as a search query.",
        "Compare the options letter by letter.",
        "Do not translate what is written.",
        "Numbers on signs are read as digits.",
        "Keep the reasoning to the text itself.",
        "Name the node id of the frame with the text.",
    ),
    "Information Synopsis": (
        "Read the overview before any search.",
        "Prefer the option that covers most of the scenes.",
        "Put the topic into one sentence of your own.",
        "An option with a wrong name is out.",
        "Look for the purpose of the work that is shown.",
        "Mention two scenes in the evidence.",
        "Small talk is seldom the main topic.",
        "Check the occasion that the people speak of.",
    ),
    "Spatial Perception": (
        "Say which thing is the point of reference.",
        "Use the reference thing as a search query.",
        "Quote the words that tell the position.",
        "Draw the arrangement as a line of words in the thought.",
        "Check that the option's thing is in the same frame.",
        "Left and right are meant as the viewer sees them.",
        "Name the node id of the wide view.",
        "A position holds for its own frame.",
    ),
}

FILLERS = tuple(
    Filler(task_type=task_type, text=f"- {line}")
    for task_type, lines in _LINES.items()
    for line in lines
)
