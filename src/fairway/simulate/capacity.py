"""The sheet for 2 billion jobs a day: `fairway simulate --capacity`, and `docs/CAPACITY.md`.

Each line is arithmetic on figures that were measured (`docs/SIZING.md`), simulated (`fairway
simulate`), or are stated as assumptions; each says which. Change a figure here and the sheet
follows; a law test holds the page to it.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from fairway.core.pools import LONG, MEDIUM, SHORT, Pool
from fairway.services.sessions.session_table import SESSIONS_MAX
from fairway.simulate.design import DAY_SECONDS, Design, slot_seconds_a_job

POOLS = (SHORT, MEDIUM, LONG)

# -- measured, on two cores: docs/SIZING.md ---------------------------------------------------
SERVER_US = 21.0  # processor time a job, handed in by batches
POSTGRES_US = 15.0
WORKER_US = 13.0
ONE_BY_ONE_PER_SECOND = 4_270.0  # one job a request, on two cores, all of it
ROW_KB = 2.5  # with 1 KB of arguments and 1 KB of result
WAL_KB = 3.1
SMALL_ROW_KB = 0.4  # with some 30 bytes of each
SMALL_WAL_KB = 1.1
KEY_KB = 0.26  # an idempotency key, for a day
CONNECTIONS = 15  # to PostgreSQL, a server

# -- simulated: `fairway simulate`, one hour, seed 1, one shard of 64 --------------------------
SLOTS_MEAN = {SHORT.number: 13_340.0, MEDIUM.number: 50_580.0, LONG.number: 108_480.0}
SLOTS_MOST = {SHORT.number: 16_000.0, MEDIUM.number: 55_300.0, LONG.number: 108_540.0}

# -- assumed ------------------------------------------------------------------------------------
PEAK = 2.0  # over the mean of the day: what servers and PostgreSQL are bought for
IN_USE_MOST = 0.6  # of a core, at the peak
ONE_BY_ONE_SHARE = 0.1  # of the jobs come alone, one a request
KEYED_SHARE = 0.5  # of the jobs have an idempotency key
RETENTION_DAYS = 7  # FAIRWAY_RETENTION_DAYS
NODE_TB_MAX = 10.0  # on one PostgreSQL node
NODE_WAL_MB_MAX = 50.0  # a second, on one node at the peak
SHARDS = 64
PAYLOAD_KB = 1.0  # of arguments, and as much of result
CORE_HOUR = 0.04  # in any currency


class Row(NamedTuple):
    what: str
    figure: str
    how: str  # the arithmetic, and where its figures are from


def cost_of_slot_hour(pool: Pool) -> float:
    """A worker has the pool's usual slots on one core: jobs that wait, not jobs that compute."""
    return CORE_HOUR / pool.slots_default


def rows() -> list[Row]:
    return [*_load(), *_servers(), *_postgres(), *_workers(), *_network(), *_money()]


def jobs_per_second() -> float:
    return Design().jobs_per_day / DAY_SECONDS


def _load() -> list[Row]:
    rate = jobs_per_second()
    return [
        Row("jobs a second", f"{rate:,.0f}", "2 000 000 000 ÷ 86 400"),
        Row(
            "at the peak",
            f"{rate * PEAK:,.0f}",
            f"× {PEAK:g} (assumed; the simulated hour has a wave of ± 25 % and bursts to 7 ×"
            " a tenant's mean)",
        ),
    ]


def server_cores() -> float:
    alone_us = 2e6 / ONE_BY_ONE_PER_SECOND - POSTGRES_US - WORKER_US
    mean_us = (1 - ONE_BY_ONE_SHARE) * SERVER_US + ONE_BY_ONE_SHARE * alone_us
    return jobs_per_second() * PEAK * mean_us / 1e6


def sessions() -> int:
    """Of workers, at the most slots."""
    return sum(math.ceil(SLOTS_MOST[pool.number] / pool.slots_default) for pool in POOLS)


def servers() -> int:
    """Each is one thread, a core, and hears so many workers; one more for the one that dies."""
    by_cores = server_cores() / IN_USE_MOST
    return math.ceil(max(by_cores, sessions() / SESSIONS_MAX)) + 1


def _servers() -> list[Row]:
    rate = jobs_per_second()
    return [
        Row(
            "shards",
            f"{SHARDS}",
            f"{rate / SHARDS:,.0f} jobs a second each; more than owners, so that they can be"
            " spread anew (assumed)",
        ),
        Row(
            "servers",
            f"{servers()}",
            f"{sessions():,} workers, {SESSIONS_MAX:,} a server at most, and one more;"
            f" {server_cores():.1f} cores at the peak, {IN_USE_MOST:.0%} of each used:"
            f" {SERVER_US:g} µs a job by batches, {ONE_BY_ONE_SHARE:.0%} of the jobs alone at"
            f" {2e6 / ONE_BY_ONE_PER_SECOND:.0f} µs for all parts (measured)",
        ),
    ]


def rows_tb_a_day() -> float:
    jobs = jobs_per_second() * DAY_SECONDS
    return jobs * ROW_KB / 1e9


def wal_mb_a_second() -> float:
    return jobs_per_second() * WAL_KB / 1e3


def nodes() -> int:
    by_disk = rows_tb_a_day() * RETENTION_DAYS / NODE_TB_MAX
    by_wal = wal_mb_a_second() * PEAK / NODE_WAL_MB_MAX
    by_cores = jobs_per_second() * PEAK * POSTGRES_US / 1e6 / IN_USE_MOST
    return math.ceil(max(by_disk, by_wal, by_cores))


def _postgres() -> list[Row]:
    jobs = jobs_per_second() * DAY_SECONDS
    cores = jobs_per_second() * PEAK * POSTGRES_US / 1e6
    return [
        Row(
            "rows on disk a day",
            f"{rows_tb_a_day():.1f} TB",
            f"× {ROW_KB:g} KB with 1 KB of arguments and of result (measured);"
            f" {jobs * SMALL_ROW_KB / 1e9:.1f} TB with 30 bytes",
        ),
        Row(
            "WAL a day",
            f"{wal_mb_a_second() * DAY_SECONDS / 1e6:.1f} TB",
            f"× {WAL_KB:g} KB (measured), {wal_mb_a_second():.0f} MB a second;"
            f" {jobs * SMALL_WAL_KB / 1e9:.1f} TB with 30 bytes",
        ),
        Row(
            "idempotency keys",
            f"{jobs * KEYED_SHARE * KEY_KB / 1e9:.2f} TB",
            f"{KEYED_SHARE:.0%} of the jobs have one (assumed) × {KEY_KB:g} KB for a day"
            " (measured)",
        ),
        Row(
            f"rows of {RETENTION_DAYS} days",
            f"{rows_tb_a_day() * RETENTION_DAYS:.0f} TB",
            "FAIRWAY_RETENTION_DAYS by default; a day less is a seventh less",
        ),
        Row(
            "PostgreSQL nodes",
            f"{nodes()} and {nodes()} standbys",
            f"{NODE_TB_MAX:g} TB and {NODE_WAL_MB_MAX:g} MB of WAL a second each (assumed);"
            f" processors are not the limit: {cores:.1f} cores at the peak for all,"
            f" {POSTGRES_US:g} µs a job (measured)",
        ),
        Row(
            "connections",
            f"{servers() * CONNECTIONS}",
            f"{CONNECTIONS} a server, to every node; as many again for a deploy that overlaps",
        ),
    ]


def _workers() -> list[Row]:
    found = []
    for pool in POOLS:
        busy = jobs_per_second() * slot_seconds_a_job(pool)
        mean, most = SLOTS_MEAN[pool.number], SLOTS_MOST[pool.number]
        at_most = f", {most:,.0f} at most" if most > mean else ""
        found.append(
            Row(
                f"{pool.name}: slots",
                f"{mean:,.0f}",
                f"{busy:,.0f} in use in the mean ({slot_seconds_a_job(pool):.3f} slot-seconds a job"
                f" of the mix); the simulated fleet held its waits with {mean:,.0f}{at_most}",
            )
        )
        found.append(
            Row(
                f"{pool.name}: workers",
                f"{mean / pool.slots_default:,.0f}",
                f"{pool.slots_default} slots each (the pool's default)",
            )
        )
    return found


def network_kb() -> float:
    """Of one job: in, to the store, to its worker, back, to the store, to the standby."""
    return 5 * PAYLOAD_KB + WAL_KB


def _network() -> list[Row]:
    mb = jobs_per_second() * network_kb() / 1e3
    return [
        Row(
            "network inside",
            f"{mb:,.0f} MB a second",
            f"{network_kb():.1f} KB a job: {PAYLOAD_KB:g} KB of arguments three times, of result"
            " twice, the WAL to a standby; frames and headers are some per cent more",
        )
    ]


def _money() -> list[Row]:
    found, total = [], 0.0
    for pool in POOLS:
        money = SLOTS_MEAN[pool.number] * cost_of_slot_hour(pool)
        total += money
        found.append(
            Row(
                f"{pool.name}: an hour",
                f"{money:,.2f}",
                f"slots × {cost_of_slot_hour(pool):.4f} a slot-hour: {CORE_HOUR:g} a core-hour"
                f" (assumed) ÷ {pool.slots_default} slots",
            )
        )
    cores = servers() + nodes() * 2 * 8
    platform = cores * CORE_HOUR
    found.append(
        Row(
            "servers and PostgreSQL: an hour",
            f"{platform:,.2f}",
            f"{servers()} cores and {2 * nodes()} nodes of 8 (assumed); disks are not counted",
        )
    )
    jobs = jobs_per_second() * 3600
    found.append(
        Row(
            "a million jobs",
            f"{(total + platform) / jobs * 1e6:,.2f}",
            f"{total + platform:,.0f} an hour ÷ {jobs / 1e6:,.1f} million jobs",
        )
    )
    return found


def page() -> str:
    """The table as `docs/CAPACITY.md` has it."""
    lines = ["| what | figure | how |", "|---|--:|---|"]
    lines += [f"| {row.what} | {_spaced(row.figure)} | {_spaced(row.how)} |" for row in rows()]
    return "\n".join(lines) + "\n"


def _spaced(text: str) -> str:
    """Thousands as pages have them; a comma between words stays one."""
    return re.sub(r"(?<=\d),(?=\d)", " ", text)


def text() -> str:
    """The same for a terminal."""
    width = max(len(row.what) for row in rows())
    figures = max(len(row.figure) for row in rows())
    return "".join(f"{row.what:<{width}}  {row.figure:>{figures}}  {row.how}\n" for row in rows())
