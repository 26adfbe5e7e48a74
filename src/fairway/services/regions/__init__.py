"""Several regions: where tenants are at home, jobs held for other regions, and handed over to them.

What of a request is passed on is decided in `api/regions`; whose word counts, in `core/regions`.
"""
