"""The queued jobs in memory: bounded windows on the heads of streams.

Here: streams, a tenant's lanes, windows and what is read into them, holds, deferred streams.
Not here: whose turn it is (`fair_share/`); reading rows (`store/backlog.py`, `services/dispatch/`).
"""
