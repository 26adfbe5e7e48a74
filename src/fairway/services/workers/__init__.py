"""The exchange with workers: heartbeats, reports, and leases nobody runs any more.

Here: one exchange, reconciling leases, rescuing jobs of silent workers, the list of workers.
Not here: what a session is (`sessions/`); whom a slot goes to (`dispatch/`).
"""
