"""Wrong answers whose cause is known because it was planted: what a judge is measured with.

    notes       the demo's trees and questions, as a scenario needs them
    skills      a short skill per class
    scenarios   one function per way of going wrong: question and notes to a trajectory
    build       scenarios with a skill that is silent, was ignored, or misleads

Questions and trees are the demo's; skills and trajectories are written here, with observations as
the agent would have read them. The same checkout gives the same cases.
"""
