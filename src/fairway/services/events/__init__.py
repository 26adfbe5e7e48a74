"""Tenants' logs of events: put in order, read, and asked for.

Here: the owner's loop from the inbox to the logs, pages of a log, who wants events of its jobs.
Not here: writing that something happened (triggers, migration 0025; notices: `store/events`).
"""
