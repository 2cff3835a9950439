"""The video room: looking into a video tree.

``actor`` serves ``protocol.video``; ``tree`` is the typed tree, ``store`` finds and keeps
the files, ``search`` ranks nodes and subtitle lines, ``render`` writes what the agent reads.
"""
