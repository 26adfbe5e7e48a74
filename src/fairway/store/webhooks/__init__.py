"""Webhooks in PostgreSQL: where events are to be sent, and what is on its way there.

Here: webhooks of a tenant, deliveries written down before they are sent, and what became of them.
Not here: the log that they are made from (`store/events`), who sends them (`services/webhooks`).
"""
