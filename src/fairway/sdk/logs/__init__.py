"""Logs read over HTTP: what a job's runs said, and what happened to a tenant's jobs.

Here: pages, and following live over connections that break.
Not here: the stream of one job's states (`client/client.py`); connections (`http/`).
"""
