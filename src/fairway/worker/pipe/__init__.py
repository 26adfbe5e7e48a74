"""The pipe between keeper and runner: frames, pings, and what may be said.

Here: both ends use it; nothing here starts or stops a process.
Not here: what is reported to the platform (`exchange/`).
"""
