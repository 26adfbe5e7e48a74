"""What holds jobs back: pauses, circuit breakers, quarantines, throttles.

Here: keeping them in step with store and streams, probing half-open circuits, telling tenants.
Not here: when one begins (`failure/`, `core/failure/`); rate limits on requests (`submit/`).
"""
