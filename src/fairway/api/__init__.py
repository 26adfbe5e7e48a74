"""Edge: HTTP. It translates and decides nothing.

Here: `endpoint.py` says what an endpoint is, `routes.py` has them all, by whose key opens them.
Not here: decisions and transactions (`services/`), messages (`wire/`).
"""
