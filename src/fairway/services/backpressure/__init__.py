"""Room for what waits or takes a while: so much in all, a part of it for each owner.

Here: memory for bodies, places for held requests, turns at connections, the last of a disk,
guesses at keys.
Not here: rate limits of submissions (`submit/admission.py`); counting (`core/backpressure/`).
"""
