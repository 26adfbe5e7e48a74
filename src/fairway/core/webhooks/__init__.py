"""Webhooks as values and rules: where one may point, how it is signed, when it is tried again.

Here: addresses that may be called, signatures by Standard Webhooks, retries, who goes first.
Not here: the calls themselves (`services/webhooks`), what an event is (`core/events`).
"""
