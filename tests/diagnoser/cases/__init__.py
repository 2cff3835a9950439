"""Wrong answers whose cause is known because it was planted: what a judge is measured with.

    notes       the demo's trees, questions and skills, as a scenario needs them
    scenarios   one function per way of going wrong: question and notes to a trajectory
    build       scenarios with a skill that is silent, was ignored, or misleads

Questions, trees and skills are the demo's; trajectories are written here, with observations as
the agent would have read them. The same checkout gives the same cases.
"""
