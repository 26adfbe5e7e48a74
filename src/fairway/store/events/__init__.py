"""The event log in PostgreSQL: an inbox without order, and each tenant's log in order.

Here: notices into the inbox, events from there to the logs, pages of a log, its days.
Not here: what becomes of jobs, which triggers (migration 0025) and the hottest statements write to
the inbox; when to move.
"""
