"""Several regions as values: their names and addresses, whose home is where, whose word counts.

Here: terms, claims and what an answer means, as pure functions.
Not here: calls to other regions (`services/regions`); rows (`store/regions`).
"""
