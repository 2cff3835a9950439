"""Builds ``seeds/demo``: a small benchmark of our own, the same bytes every time.

    choice.py     every choice, from a hash of a readable key
    themes.py     words: places, things, names
    videos.py     the facts of each video (who, what, how many, in which order)
    trees.py      facts -> video tree
    questions.py  facts -> one multiple-choice question, with the nodes that prove it
    plan.py       which video is asked which class, and which lesson a question hangs on
    classes.py    lessons and traps of each class; fillers.py lines without effect
    prompts.py    the same for the system prompt and two tool prompts
    documents/    the first version of the skills and prompts
    build.py      all of it together, checked, as bytes per path

It reads no clock, no network and nothing outside its own folder.
"""
