"""How many server processes a machine runs, and how they divide what one server has for itself.

Pure: counts in, counts out. Starting them is `cli/processes/server_group.py`.
"""

from __future__ import annotations

from typing import NamedTuple

FEW_CORES = 2  # PostgreSQL and workers need one as well
DEFAULT_MAX = 8  # as many as the 100 connections of a usual PostgreSQL have room for
PROCESSES_MAX = 64
DEDICATED_CONNECTIONS = 2  # of a process: for leadership, and to see whether the store is there
SPARE_CONNECTIONS = 5  # beside servers: a migration, a backup, an operator


class PoolSizes(NamedTuple):
    """Connections to the store that one process opens at most, by kind of work."""

    hot: int
    people: int
    background: int
    upkeep: int


WHOLE = PoolSizes(hot=6, people=4, background=2, upkeep=1)
#: With less, one slow question or one long write would hold up all others of its process.
LEAST = PoolSizes(hot=3, people=3, background=2, upkeep=1)


def processes_by_cores(cores: int) -> int:
    """One on a small machine; then half of the cores: the rest is for PostgreSQL and workers."""
    return 1 if cores <= FEW_CORES else min(cores // 2, DEFAULT_MAX)


def pool_sizes(processes: int) -> PoolSizes:
    """The part of each of so many processes in the connections of one server, or the least."""
    shares = (-(-whole // processes) for whole in WHOLE)
    return PoolSizes(*(max(share, least) for share, least in zip(shares, LEAST, strict=True)))


def connections_of(processes: int) -> int:
    """All that so many processes open, together."""
    return processes * (sum(pool_sizes(processes)) + DEDICATED_CONNECTIONS)


def connections_needed(processes: int) -> int:
    """What PostgreSQL must have room for, so that somebody can still look after it."""
    return connections_of(processes) + SPARE_CONNECTIONS
