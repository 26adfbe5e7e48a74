"""Names of things: job ids that carry their shard and sort by time, and how to read them.

A job id is a UUIDv7 in its canonical text form. The 12 bits of `rand_a` hold the shard, so a
lookup by id needs no other index; the 62 bits of `rand_b` hold a counter and chance, so ids made
by one process within one millisecond keep their order. Text order equals byte order equals time
order. This file makes no ids by itself: the clock and the dice are handed in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NewType

JobId = NewType("JobId", str)
TenantId = NewType("TenantId", int)
PoolId = NewType("PoolId", int)
TypeId = NewType("TypeId", int)  # of a job type
ShardId = NewType("ShardId", int)
Term = NewType("Term", int)  # of a shard's owner
Epoch = NewType("Epoch", int)  # of a lease

FIRST_SHARD = ShardId(0)  # its owner does what is done once for all
FIRST_TERM = Term(1)  # nobody owned the shard before
NO_TERM = Term(0)  # no owner has it
NO_EPOCH = Epoch(0)  # of a job that no lease was ever written for

SHARD_BITS = 12
SHARDS_MAX = 1 << SHARD_BITS
COUNTER_BITS = 20
COUNTER_MAX = 1 << COUNTER_BITS
RANDOM_BITS = 62 - COUNTER_BITS
REGION_BITS = 4  # the highest of those left to chance, where there are regions

SHARD_DIGITS = slice(15, 18)  # where an id's text names its shard

_VARIANT = 0b10 << 62
_LOW_48 = (1 << 48) - 1

LOWEST_JOB_ID = JobId("00000000-0000-0000-0000-000000000000")
HIGHEST_JOB_ID = JobId("ffffffff-ffff-ffff-ffff-ffffffffffff")

_CANONICAL = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def make_job_ids(
    shard: ShardId, unix_ms: int, counter: int, random: int, count: int
) -> list[JobId]:
    """So many ids. `counter` orders those of one millisecond, `chance` keeps processes apart.

    Ids are made by the tens of thousands a second, so what they share is formatted once.
    """
    head = f"{unix_ms >> 16:08x}-{unix_ms & 0xFFFF:04x}-{0x7000 | shard:04x}-"
    first = _VARIANT | counter << RANDOM_BITS | random
    if count == 1:
        return [JobId(f"{head}{first >> 48:04x}-{first & _LOW_48:012x}")]
    tails = [f"{first + (n << RANDOM_BITS):016x}" for n in range(count)]
    return [JobId(f"{head}{tail[:4]}-{tail[4:]}") for tail in tails]


def make_job_id(shard: ShardId, unix_ms: int, counter: int, random: int) -> JobId:
    return make_job_ids(shard, unix_ms, counter, random, 1)[0]


def ids_from(first: JobId, count: int) -> list[JobId]:
    """The ids that `make_job_ids` made together, so many, of which this is the first."""
    if count < 2:  # of none there is no first, either
        return [first] * count
    head, start = first[:19], _tail(first)
    tails = [f"{start + (n << RANDOM_BITS):016x}" for n in range(count)]
    return [JobId(f"{head}{tail[:4]}-{tail[4:]}") for tail in tails]


def id_at(first: JobId, place: int) -> JobId:
    """The one at this place of `ids_from`, from 0."""
    tail = f"{_tail(first) + (place << RANDOM_BITS):016x}"
    return JobId(f"{first[:19]}{tail[:4]}-{tail[4:]}")


def lowest_of_moment(job: JobId) -> JobId:
    """Below all ids that were made together with this one."""
    return JobId(f"{job[:19]}{LOWEST_JOB_ID[19:]}")


def place_among(first: JobId, count: int, job: JobId) -> int | None:
    """The place of a job among so many ids that were made together; None: it is none of them."""
    place, rest = divmod(_tail(job) - _tail(first), 1 << RANDOM_BITS)
    is_one = job[:19] == first[:19] and not rest and 0 <= place < max(count, 1)
    return place if is_one else None


def _tail(job: JobId) -> int:
    return int(job[19:23] + job[24:], 16)


def parse_job_id(text: str) -> JobId | None:
    """The id in canonical form, or None when the text is no job id of ours."""
    lowered = text.lower()
    return JobId(lowered) if _CANONICAL.fullmatch(lowered) else None


def shard_of(job_id: str) -> ShardId:
    """The shard that an id names."""
    return int(job_id[SHARD_DIGITS], 16)  # type: ignore[return-value]  # asked for every job


def shards_named(ids: Iterable[str]) -> list[ShardId]:
    """As `shard_of`, for a batch: no call for each."""
    return [int(one[SHARD_DIGITS], 16) for one in ids]  # type: ignore[misc]  # asked for every job


def unix_ms_of(job_id: str) -> int:
    """The millisecond in which an id was made."""
    return int(job_id[:8] + job_id[9:13], 16)


def lowest_id_at(unix_ms: int) -> str:
    """The smallest id of any shard made in this millisecond: a bound for ranges and partitions."""
    return f"{unix_ms >> 16:08x}-{unix_ms & 0xFFFF:04x}-0000-0000-000000000000"


def id_before(job_id: str) -> str:
    """The largest id below this one: a read after it brings this one."""
    digits = f"{int(job_id.replace('-', ''), 16) - 1:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
