"""Loops and use-cases, between decisions (`core/`) and statements (`store/`).

Here: a package for each thing that a server does; `platform.py` joins them, with `engine.py`,
`job_services.py` and `loop_services.py`.
Not here: HTTP and its messages (`api/`), SQL (`store/`), decisions that need no I/O (`core/`).
"""
