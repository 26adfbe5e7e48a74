"""The messages of the API and of the worker exchange, and how errors look there.

Here: structs, their bounds, problem codes, and the rule for payloads.
Not here: sending and receiving (`api/`, `sdk/`, `worker/`); values between our parts (`core/`);
what only our own processes say to each other (`api/relay.py`, `worker/pipe/`).
"""
