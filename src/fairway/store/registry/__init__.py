"""Statements on what is registered: tenants and keys, tiers, pools, job types, logins.

Here: one module for each file of statements, as beside this package.
Not here: jobs and what becomes of them; decisions on what is registered (`services/registry`).
"""
