"""Several regions as values: their names and addresses, whose home is where, whose word counts.

No calls and no rows: those are in `services/regions` and `store/regions`.
"""
