"""Requests of tenants that are at home in another region: passed on, or held for it.

Here: the gate that passes requests on, and what servers of other regions ask.
Not here: held jobs and their way home (`services/regions`); what operators ask (`api/operators`).
"""
