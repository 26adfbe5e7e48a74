"""The work: loops and use-cases that join the law and the memory.

Here: one drawer for each thing that a server does; `engine.py` and `platform.py` join them.
Not here: HTTP and its messages (`api/`), SQL (`store/`), decisions that need no I/O (`core/`).
"""
