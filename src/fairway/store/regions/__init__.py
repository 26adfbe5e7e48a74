"""Statements on several regions: whose home is where, what changed in the directory, what is held.

Here: rows of one region's store, and rows of others as JSON.
Not here: calls to other regions (`services/regions`).
"""
