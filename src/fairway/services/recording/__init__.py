"""Writing down what happened to runs, in groups: leases and outcomes.

Here: the recorder, the writer of leases, and what is done with rows that the store refuses.
Not here: deciding an outcome's consequence (`failure/`); the statements (`store/outcomes.py`).
"""
