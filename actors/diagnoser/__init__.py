"""The diagnoser room: why a wrong answer was wrong, and which cases editors are shown.

    metrics      what a trajectory says without a model
    judge        one question to the judge, one more if its reply cannot be used
    followed     the skill that the answer was given under
    waterfall    from what it says to the kind of failure
    rules        the line of the skill that it quotes
    withhold     no text leaves this room with the answer in it
    cases        stored rows put together, and one of them as a case
    packs        the cases for the editors of skills and of the system prompt
    spans        the calls for the editors of tool prompts
    actor        the two requests of ``protocol.diagnoser``

Nothing here edits a document, and nothing here knows what will be done with a diagnosis.
"""
