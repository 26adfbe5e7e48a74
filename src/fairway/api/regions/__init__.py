"""Requests of tenants that are at home in another region: passed on, or held for it.

What is done with held jobs is in `services/regions`; operators' own endpoints are in `operators`.
"""
