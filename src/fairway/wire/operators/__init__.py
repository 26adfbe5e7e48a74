"""Messages of the endpoints for operators, as `api/operators` answers them.

Here: tenants and keys, pools and job types, workers, the audit.
Not here: what tenants say of their jobs (`wire`).
"""
