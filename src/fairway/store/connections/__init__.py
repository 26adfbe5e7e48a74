"""Connections to PostgreSQL: pools with deadlines, and how a statement is run.

Here: the pools and their cache, hosts, slots for slow questions, row security, errors read.
Not here: statements (`queries/` and the modules above); waiting for the store (`services/`).
"""
