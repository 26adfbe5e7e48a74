"""What becomes of work that fails: retries, circuit breakers, quarantine, dead letters.

Here: pure decisions from facts and `now`, and the error that a run reports.
Not here: what a run's end is called (`run/`); keeping these in step with the store (`services/`).
"""
