"""Simulated training in a planted world, where the truth of every edit is known.

``planted`` is the world, ``twin_world`` the simulator's own in the same form, ``rules`` and
``gate_rule`` decide about one candidate after another, ``training`` and ``factorial_run`` train,
``comparison`` sets designs side by side at the same cost. Only answers are sampled: schedule,
ladder, coins, levels, decisions are the gate's own functions. Nothing here reads a workspace,
asks an endpoint or writes a file.
"""
