"""A very large tenant in several shards: it is made of parts, each a tenant with its own shard.

The first part is the tenant that people know: it has the keys, and all that is judged in one place
(unique jobs, limits by key, flows, schedules, uploads). The others are named after it with a
number, `big#1`, and have nothing but jobs. What the tenant is entitled to is divided among them.

    a job ──┬─ judged in one place ──▶ the first part
            ├─ Idempotency-Key ──────▶ the part of that key, always the same
            └─ neither ──────────────▶ the next part, in turn

Which part a job is in its id tells: each has another shard. Pure: knows no store and no request.
"""

from __future__ import annotations

from hashlib import blake2b

from fairway.core.ids import ShardId
from fairway.core.tenant import Reserved, Tenant

PARTS_MAX = 16  # whoever lists all jobs asks so many shards
MARK = "#"  # no name that somebody gives holds it
FIRST = 0


def part_name(name: str, place: int) -> str:
    return name if place == FIRST else f"{name}{MARK}{place}"


def whole_name(name: str) -> str:
    """What people call the tenant of a part. `#7` is a tenant that is not known by name yet."""
    return name.partition(MARK)[0] or name


def is_further_part(name: str) -> bool:
    """Whether this is a part, and not the first."""
    return MARK in name and not name.startswith(MARK)


def part_of_key(key: str, count: int) -> int:
    """The part that judges an Idempotency-Key: the same at every server, for good."""
    digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) % count


def part_of_job(key: str | None, count: int, turn: int, *, is_judged_in_one_place: bool) -> int:
    """Where a new job goes; `turn` counts those that may go anywhere."""
    if is_judged_in_one_place:
        return FIRST
    return turn % count if key is None else part_of_key(key, count)


def shards_of_parts(first: ShardId, count: int, shards: int) -> list[ShardId]:
    """A shard for each, all different, far apart: neighbours may have the same owner."""
    apart = shards // count
    return [ShardId((first + place * apart) % shards) for place in range(count)]


def portion(whole: int, place: int, count: int) -> int:
    """A part's of so many: they add up to the whole, and differ by one at most."""
    return whole // count + (place < whole % count)


def part_in_force(tenant: Tenant, place: int) -> Tenant:
    """A part with what it is entitled to. What cannot be divided that far is one for each."""
    count = len(tenant.parts)

    def some(whole: int) -> int:
        return max(portion(whole, place, count), 1)

    slots: Reserved = tuple((pool, portion(n, place, count)) for pool, n in tenant.reserved)
    return tenant._replace(
        weight=some(tenant.weight),
        depth_limit=some(tenant.depth_limit) if tenant.depth_limit else 0,  # none is said so
        floor_share=portion(tenant.floor_share, place, count),
        cap=None if tenant.cap is None else some(tenant.cap),
        rate_per_second=some(tenant.rate_per_second),
        burst=some(tenant.burst),
        reserved=slots,
        parts=tenant.parts if place == FIRST else (),
    )
