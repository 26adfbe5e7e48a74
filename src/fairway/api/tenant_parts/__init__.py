"""Requests of tenants in several shards: which part answers, and answers of all parts as one.

Here: the part that an endpoint means, replies merged, jobs placed. A tenant in one shard pays
nothing for it.
Not here: how a tenant is divided (`core/ownership`), and the endpoints themselves.
"""
