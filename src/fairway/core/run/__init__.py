"""One run of a job: the lease it runs under, its limits, and how it ended.

Here: leases and their tokens, outcomes, limits of its process, its line in the history, its bill.
Not here: what happens to the job afterwards (`failure/`); the process itself (`worker/`).
"""
