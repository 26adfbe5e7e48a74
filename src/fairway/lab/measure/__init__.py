"""What the lab computes: pure functions of times and counts, no clock, no I/O.

Here: knees, rates, timelines, the figures of a fleet.
Not here: quantiles, load and processes (`rig/`).
"""
