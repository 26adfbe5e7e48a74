"""Workers' endpoints: the exchange and checkpoints.

Here: wire messages in, services' values out, as raw ASGI.
Not here: operators looking at workers (`operators/`); passing calls on (`relay.py`).
"""
