"""Which server owns which shard: taken, renewed, shared out, handed over, let go.

Here: heartbeats and terms, what a new owner does before it grants, who stands in for none.
Not here: what an owner grants (`dispatch/`); in which shard a tenant is (`core/ownership/`).
"""
