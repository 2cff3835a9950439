"""The embedder's room: texts as vectors.

``actor`` serves ``protocol.embedder``; ``batches`` lets texts that wait travel together,
``client`` asks an OpenAI-compatible server, ``local`` a model on this machine, ``vectors``
packs what they say.
"""
