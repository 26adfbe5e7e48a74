"""Who gets the next slot of a pool: fair shares of slot-time between tenants.

Here: weights, floors, reserves and headroom, what a job is charged, and what people may know of it.
Not here: which job of the tenant goes (`backlog/`); the loop that ticks it (`services/dispatch/`).
"""
