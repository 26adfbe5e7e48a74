"""A tenant's log of events over HTTP.

Here: pages of it, streams and sockets that follow it, and what is written to it.
Not here: the changes of one job as a stream (`jobs/events.py`).
"""
