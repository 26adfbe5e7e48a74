"""Edge: HTTP. It translates and decides nothing.

Here: `app.py` has the route table; endpoints lie by whose key opens them.
Not here: decisions and transactions (`services/`), messages (`wire/`).
"""
