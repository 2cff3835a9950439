"""The rollout room: the agent answers one question over one video tree.

``actor`` serves ``protocol.rollout``; ``prompt`` writes what the agent reads, ``action``
reads its replies, ``loop`` is its turns, ``answer`` (and the ``answer_*`` files) the one
way from a submission to a letter, ``record`` what is stored.
"""
