"""HTTP itself: uvicorn's protocol guarded, raw ASGI helpers, headers and bodies.

Here: what every endpoint uses and none is about.
Not here: who is asking (`auth.py`); what a body says (`payloads/`).
"""
