"""A tenant's webhooks over HTTP.

Here: `/v1/webhooks…`, translated; nothing is decided.
Not here: the messages (`wire/webhooks.py`), the calls to receivers (`services/webhooks`).
"""
