"""Answered chats, kept for a limited time; see ``protocol/cache.py`` for what can be asked.

    settings.py   which store, how long, where (row P1-1)
    entry.py      an answer as bytes that prove themselves
    store.py      what a store is
    sqlite.py     one file, the default
    redis.py      shared between machines
    actor.py      hits, misses, counts

It must never hand out an answer of another key, a damaged one or an expired one, and never
fail a chat because the cache is not there.
"""
