"""Many undecided edits tested at once, on pairs of complementary coin flips (a foldover design).

Instead of one candidate against a snapshot, every edit of a class that is still undecided takes
part in every pair: its own fair coin switches it on in one arm and off in the other. An edit that
changes nothing has coins that are fair given all outcomes (the coin lemma, study T6), from which
the false discovery rate of a run's adopted edits follows (T7).

Pure: ``schedule`` says what will be drawn and ``preview`` what that can see, ``coins`` who is on,
``tally`` counts, ``drop`` turns off what harms, ``stepup`` adopts, ``sentinel`` checks the coins,
``course`` retells a log, ``report`` tells. Nothing here draws an answer, and nothing may look at
an outcome when it fixes a coin or a count of pairs.
"""
