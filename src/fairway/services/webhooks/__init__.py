"""Webhooks: a tenant's events, sent to receivers of its own choice.

Here: making and changing them, reading the log for them, calling receivers so that none is in
another's way.
Not here: the log itself (`services/events`), where a webhook may point and when it is tried again
(`core/webhooks`), the connection (`runtime/pinned_http.py`).
"""
