"""Writing down what happened to runs, in groups: leases and outcomes.

Here: the recorder, the writer of leases, lines for members of flows, rows that the store refuses.
Not here: deciding an outcome's consequence (`failure/`); the statements (`store/outcomes.py`).
"""
