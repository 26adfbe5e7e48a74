"""The exchange with workers: heartbeats, reports, and leases nobody runs any more.

Here: one exchange, reconciling leases, rescuing jobs of silent workers, the list of workers, and
shutting out keys that are revoked and tenants that are suspended.
Not here: what a session is (`sessions/`); whom a slot goes to (`dispatch/`).
"""
