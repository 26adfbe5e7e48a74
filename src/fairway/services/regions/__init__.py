"""Several regions: where tenants are at home, jobs held for other regions, and handed over to them.

Here: the loops that keep regions acquainted and hand over, and what operators do to homes.
Not here: which requests are passed on (`api/regions`); whose word counts (`core/regions`).
"""
