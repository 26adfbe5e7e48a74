"""What is registered: tenants and keys, pools and job types, and the names of types.

Here: memory of these, refreshed from the store, tenants' states, letting go of names nobody uses.
Not here: what a tenant may do now (`submit/`, `restraints/`); measuring types (`maintenance/`).
"""
