"""The twin room: a SIMULATOR behind an OpenAI-compatible endpoint, not a language model.

    layout, wire       what is read and what is written, as types
    world, catalog     the planted truth and the questions it belongs to
    chance             every draw: a hash of a readable key
    agent, judge,      what the three simulated models say: pure functions of
    editor             (world, shares, request)
    ideas, document    what the editor may propose, and where in a document
    truth              what an edit is really worth
    server             routes and streams; process, actor: the child process that serves them

Nothing here may know a run, a workspace or another room.
"""
