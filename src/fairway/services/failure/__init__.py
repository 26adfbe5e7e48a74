"""What becomes of a job after a run failed, given what many jobs share.

Here: the failure policy (retry, circuit, quarantine, budget) and what workers asked for.
Not here: the decision for one job (`core/failure/`); acting on open circuits (`restraints/`).
"""
