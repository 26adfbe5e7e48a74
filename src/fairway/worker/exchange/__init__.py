"""The keeper's side of the exchange: what it holds and what it still has to say.

Here: the session, the ledger and its journal, reports, large results, lines about failures.
Not here: running jobs (`runners/`); fetching payloads and checkpoints (`transfers.py`).
"""
