"""Statements on several regions: whose home is where, what changed in the directory, what is held.

Calls to other regions are in `services/regions`.
"""
