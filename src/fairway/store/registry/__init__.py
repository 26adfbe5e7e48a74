"""Statements on what is registered: tenants, keys, tiers, pools, job types, logins.

Jobs and what becomes of them are beside this drawer; no decision is made here.
"""
