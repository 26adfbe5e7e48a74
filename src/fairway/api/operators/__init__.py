"""Operators' endpoints: tenants, tiers, keys, pools, job types, workers, health.

Here: all that can be changed while everything runs.
Not here: what tenants see of it (`jobs/`); the commands (`cli/`).
"""
