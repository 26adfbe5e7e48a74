"""Writes a group of which some jobs have keys: none whose key is taken, or that is not unique.

In one transaction, or one statement where that is cheaper: a key is never claimed for a job that is
not there. Who is told what is decided elsewhere (`submission_group.py`).
"""

from __future__ import annotations

from fairway.core.ids import ShardId, TenantId
from fairway.services.submit.already_written import written_before
from fairway.services.submit.idempotency_keys import are_few_keyed, jobs_to_write, with_claims
from fairway.services.submit.submission_group import (
    Submission,
    Written,
    is_traced,
    marks_in,
    scheduled_in,
)
from fairway.services.submit.unique_intake import UniqueIntake
from fairway.store import submissions as store
from fairway.store.connections.database import Connection
from fairway.store.submissions import KeyClaim, KeyHolder


async def write_keyed(
    connection: Connection,
    shard: ShardId | None,
    group: list[Submission],
    claims: dict[tuple[TenantId, str], KeyClaim],
    unique: UniqueIntake,
) -> Written:
    scheduled, marks, with_traces = scheduled_in(group), marks_in(group), is_traced(group)
    written = Written({}, {})
    if shard is not None and any(item.unique for item in group):
        async with connection.transaction():
            written = await unique.write(connection, shard, group, claims)
        taken = written.holders
    elif scheduled is None and marks is None and are_few_keyed(group, store.FEW_KEYED_JOBS):
        taken = await store.claim_and_insert(
            connection, shard, [*claims.values()], [*with_claims(group)], traced=with_traces
        )
    else:
        async with connection.transaction():
            taken = await store.claim_keys(connection, shard, list(claims.values()))
            winners = jobs_to_write(group, claims, taken)
            if winners:
                await store.insert_jobs(
                    connection, shard, winners, scheduled, marks, traced=with_traces
                )
    holders = taken | {
        key: KeyHolder(claim.body_hash, claim.job)
        for key, claim in claims.items()
        if key not in taken
    }
    there = written_before(claims, taken, written.lost) if taken or written.lost else ()
    return written._replace(holders=holders, there=frozenset(there))
