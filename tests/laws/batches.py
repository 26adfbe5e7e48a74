"""Values for any named statement over a batch of jobs; each takes what it asks for."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from fairway.core.ids import LOWEST_JOB_ID, Epoch, unix_ms_of
from fairway.core.job import QueuedJob
from fairway.core.run.follow_up_ids import follow_up_ids
from fairway.runtime.random_ids import session_key
from fairway.store import arrays

BATCH = 20
NOW = datetime.now(UTC)
DUE = NOW - timedelta(seconds=1)
HIGHEST = "ffffffff-ffff-ffff-ffff-ffffffffffff"


def batch_values(jobs: list[QueuedJob]) -> dict[str, Any]:
    """Values for any statement; each takes what it asks for."""
    count, ids = len(jobs), [job.id for job in jobs]
    return {
        "shard": 0, "term": 1, "shards": [0] * count, "owned": [0], "terms": [1],
        "key_shards": [0] * count, "child_shards": [0] * count,
        "tenants": [job.tenant for job in jobs], "ids": ids,
        "epochs": [1 << 24] * count, "sessions": [session_key() for _ in jobs],
        "tokens": [session_key()] * count, "rans_us": [5] * count, "results": [b"1"] * count,
        "states": [4] * count, "attempts": [1] * count, "deliveries": [1] * count,
        "execute_ats": [None] * count, "errors": [None] * count, "workers": ["w"] * count,
        "started_ats": [NOW] * count,
        "openers": ["k"] * count, "pools": [1] * count, "types": [job.type for job in jobs],
        "debts_us": [1] * count, "lanes": [job.lane for job in jobs],
        "priorities": [job.priority for job in jobs], "cursors": [LOWEST_JOB_ID] * count,
        "limits": [BATCH] * count, "limit": BATCH, "tenant": jobs[0].tenant, "id": jobs[0].id,
        "key_tenants": [job.tenant for job in jobs],
        "keys": [f"k{n}" for n in range(count)], "body_hashes": [b"h"] * count, "jobs": ids,
        "failures": [None] * count, "fingerprints": [7] * count, "entries": [b"{}"] * count,
        "are_attempts": [True] * count, "ended_ats": [None] * count,
        "billed_us": [5] * count, "places": arrays.places(["(0,1)"] * count),
        "keep": timedelta(days=1), "silence": timedelta(seconds=10),
        "before": HIGHEST, "since": jobs[0].id, "type": None, "pool": None,
        "lane": 0, "priority": 5,
        "second": -1, "bunch_seconds": [int(DUE.timestamp())], "bunch_tenants": [1],
        "execute_at": NOW, "error": b"{}", "light_bytes": 1000, "budget_bytes": 1 << 20,
        "tag": None, "after": LOWEST_JOB_ID, "with_payloads": False, "in_flow": False,
        "digests": [n.to_bytes(16, "big") for n in range(count)],
        "withins": [timedelta(days=1)] * count,
        "gone_before": HIGHEST,
        "ends": 0b111000,
    } | _children(jobs)  # fmt: skip


def _children(jobs: list[QueuedJob]) -> dict[str, Any]:
    """One that each of them starts, if it ends well."""
    count, at_ms = len(jobs), unix_ms_of(jobs[0].id)
    born = [follow_up_ids(job.id, Epoch(random.getrandbits(40)), at_ms, 1)[0] for job in jobs]
    return {
        "children": [1] * count, "children_ms": [at_ms] * count, "child_ids": born,
        "child_tenants": [job.tenant for job in jobs], "parents": [job.id for job in jobs],
        "timeouts_ms": [None] * count, "child_states": [1] * count, "payloads": [b"{}"] * count,
        "traces": [None] * count, "child_traces": [None] * count,
        "child_events": [None] * count, "not_afters": [None] * count, "on_lates": [None] * count,
        "child_limits": [None] * count, "child_tags": [None] * count,
        "child_metadata": [None] * count,
    }  # fmt: skip


#: The walk over all streams begins before the first.
FROM_THE_START = {"pool": -1, "tenant": -1, "lane": -1, "type": -1, "priority": -1, "limit": 10**9}
ONE_SHARD: dict[str, Any] = {"shards": [0]}
OWN_VALUES: dict[str, dict[str, Any]] = {
    "shards_scheduled": ONE_SHARD,
    "shards_past_last_moments": ONE_SHARD,
    "shards_queued": ONE_SHARD,
    "streams_with_work": FROM_THE_START,
    "next_queued": FROM_THE_START | {"limit": BATCH},
    "pull_heads": {"pool": 1, "tenant": -1, "per_tenant": 16, "limit": BATCH},
}
