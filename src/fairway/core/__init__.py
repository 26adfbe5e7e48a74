"""Pure values and decisions. No clock, no randomness, no I/O; `now` is always an argument.

Here: what a job, a tenant, a pool and a state are, and every decision about them.
Not here: rows (`store/`), messages (`wire/`), loops and waiting (`services/`).
"""
