"""Making a tree of a video file, for ``bin/trm tree``.

``media`` decodes (PyAV), ``cuts`` finds where the picture changes, ``segments`` divides the
time, ``srt`` reads subtitles, ``cards`` asks a vision model and reads its replies, ``outline``
puts nodes together in the owner's format, ``work`` remembers what is done. Never used by a run.
"""
