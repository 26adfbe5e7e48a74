"""The contract: every message that crosses a process line, and how errors look on it.

Here: structs, their bounds, problem codes, and the rule for payloads.
Not here: sending and receiving (`api/`, `sdk/`, `worker/`); values between our parts (`core/`).
"""
