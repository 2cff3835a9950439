"""The twin room: a SIMULATOR behind an OpenAI-compatible endpoint, not a language model.

    wire, written      the protocol: what is read and what is written, as types
    layout, briefs     the prompts' layouts: the agent's and the judge's, the editor's
    world, catalog     the planted truth and the questions it belongs to
    chance             every draw: a hash of a readable key
    agent, judge,      what the three simulated models say: pure functions of
    editor             (world, shares, request)
    editing, ranking,  the editor's parts: edits of skills and prompts; which edits are best;
    regions, hostile   notes and momentum; attacks in the place of replies
    ideas, document    what the editor may propose, and where in a document
    shares             which of its proposals are good, idle, bad or broken
    truth              what an edit or a package is really worth
    server             routes and streams; process, actor: the child process that serves them

Nothing here may know a run, a workspace or another room.
"""
