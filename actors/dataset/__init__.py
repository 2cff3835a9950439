"""Questions, their split into pools, and the work of an epoch.

Everything here but ``actor`` is pure or reads files; nothing here writes one.
"""
