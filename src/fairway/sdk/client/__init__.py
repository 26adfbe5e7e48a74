"""A program that hands jobs in: the HTTP client, handles, and what can go wrong.

Here: the backend's port, transport and retries, jobs of many callers in one call, server-sent
events, the blocking face.
Not here: declaring jobs (`app.py`, `job.py`); what a handler sees (`handler/`).
"""
