"""The rollout room: the agent answers one question over one video tree.

``actor`` serves ``protocol.rollout``. ``loop`` is the agent's turns; ``tools`` what it may call,
``action`` reads a call, ``dialect`` how calls and observations travel (JSON or native),
``conversation`` and ``budget`` keep it within bounds, ``prompt`` writes what it reads, ``library``
holds the skills that it may choose from. ``answer`` (and the ``answer_*`` files) is the one way
from a submission to a letter, ``outcome`` how an attempt ends, ``record`` what is stored.
"""
