"""Which shard is whose home, as values: where a tenant's rows are.

Here: the shard of a tenant, and how many shards there are.
Not here: which server owns a shard (`core/shard_spread.py`, `services/ownership/`).
"""
