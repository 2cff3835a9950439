"""What is said to a model by the engine, and how its replies are read.

The Markdown files in this folder are the engine's own prompts: part of the
program, never evolved. ``templates`` loads and fills them, ``question`` and
``trajectory`` put questions and stored steps into words, ``conversation`` asks and
asks once more, ``reply`` decodes what comes back, ``withhold`` takes the answer out of what
editors read. Any room may import this package; it imports only protocol and msgspec,
and never knows a room.
"""
