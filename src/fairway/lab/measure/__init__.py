"""What the lab computes: pure functions of times and counts, no clock, no I/O.

Here: quantiles, knees, rates, timelines.
Not here: load and processes (`generator.py`, `house.py`).
"""
