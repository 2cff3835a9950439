"""What an operator sees of a run and how he steers it: above the rooms, known to none of them.

``board`` adds log events up, ``words`` makes lines of that, ``ticker`` says them in time;
``control`` listens on the workspace's socket; ``metrics`` serves numbers; ``screen`` draws.
Looks on: nothing here decides anything about the training.
"""
