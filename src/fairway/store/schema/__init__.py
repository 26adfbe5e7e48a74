"""The shape of the database: migrations, online indexes, time partitions.

Here: running the numbered files of `migrations/`, making partitions and taking them away.
Not here: statements on jobs (above); when a partition goes (`services/maintenance/`).
"""
