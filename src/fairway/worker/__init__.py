"""Edge: runs handlers. A keeper talks to the platform; runners hold the user's code.

Here: `keeper.py` and `runner.py` are the two programs; packages hold their parts.
Not here: calling the function itself (`sdk/run.py`); whom a job goes to (`services/dispatch/`).
"""
