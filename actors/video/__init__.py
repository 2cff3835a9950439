"""The video room: looking into a video tree.

``actor`` serves ``protocol.video``; ``tree`` is the typed tree, ``store`` finds and keeps the
files, ``search`` ranks nodes and subtitle lines by words, ``vectors`` by meaning, ``frames``
finds and encodes pictures, ``locks`` lets different videos not wait for each other, ``render``
writes what the agent reads. ``builder`` makes trees, for ``bin/trm tree`` alone.
"""
