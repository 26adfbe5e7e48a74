"""How much is let in, and who goes first when there is too much: counts, no waiting.

Here: the token bucket of a rate limit, room counted in bytes, the last of a disk, turns, which
connections may stay.
Not here: shares of worker time (`fair_share/`); whoever waits (`services/backpressure/`).
"""
