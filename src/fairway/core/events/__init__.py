"""The event log as values: what happened to a tenant's jobs, in an order that never changes.

Here: an event, the kinds there are, and which of them somebody wants to hear of.
Not here: how they are written and read (`store/events`), who moves them (`services/events`), the
stream of one job's changes (`api/jobs/events.py`).
"""
