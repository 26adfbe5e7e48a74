"""Loops that keep a server tidy and known; no job waits for them.

Here: retention and partitions, gauges, reclassifying types, slow statements, checkpoint warnings,
what deleted tenants leave behind.
Not here: leftover objects (`object_storage/`); rescuing jobs (`workers/`, `dispatch/`).
"""
