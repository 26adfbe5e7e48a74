"""How the platform is, in a word and with reasons; how soon a queue is empty; how near its bend.

Every rule here is a function of what is seen. What is unknown gives no reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from fairway.core.insight.alarm_readings import PLATFORM, TYPES_NAMED_MAX
from fairway.core.insight.alarms import Raised
from fairway.core.insight.sight import PoolSight, ServerSight
from fairway.core.insight.spans import span

Status = Literal["ok", "warning", "critical"]

BUSY, FULL = 0.8, 0.95  # parts of the slots in use
FAR_OVER_SLO = 10.0  # times
NO_WORKER_MS = 60_000  # workers are away for a moment at every deploy
#: Alarms whose reason has another name.
#: Alarms tell of these type by type, a reason of all of them.
TOLD_IN_PARTS = {"NO_WORKER_FOR_TYPE", "CIRCUIT_OPEN"}
ALARM_CODES = {
    "POOL_WITHOUT_WORKERS": "NO_WORKERS",
    "OLDEST_AGE_FAR_OVER_SLO": "OLDEST_AGE_OVER_SLO",
}
_RANKS: dict[Status, int] = {"ok": 0, "warning": 1, "critical": 2}


class HealthReason(NamedTuple):
    code: str
    severity: Status
    text: str
    link: str
    subject: str = PLATFORM  # as alarms name it


class Health(NamedTuple):
    status: Status
    reasons: list[HealthReason]


def utilisation(running: int, slots: int) -> float | None:
    """None without slots: that is not idle, and not full."""
    return min(running / slots, 1.0) if slots else None


def drain_seconds(queued: int, falling: float | None) -> float | None:
    """Until nothing waits, if the queue goes on falling like this; None: never, or not known."""
    if not queued:
        return 0.0
    return queued / falling if falling is not None and falling > 0 else None


def is_near_knee(pool: PoolSight) -> bool:
    """Whether a little more work would make everybody wait: nearly all slots are in use, or many
    are and jobs wait half as long as they may."""
    used = utilisation(pool.running, pool.slots)
    if used is None or not pool.queued:
        return False
    waits_long = pool.oldest_ms is not None and pool.oldest_ms >= 500 * pool.slo_seconds
    return used >= FULL or (used >= BUSY and waits_long)


def health_of(seen: ServerSight, shards_total: int, *, is_store_away: bool = False) -> Health:
    found: list[HealthReason] = []
    if is_store_away:
        text = "The database gives no answer: nothing is accepted, and what is said here is old."
        found.append(HealthReason("STORE_AWAY", "critical", text, "/ui/alarms"))
    missing = shards_total - seen.shards_owned
    if missing > 0:
        text = f"{missing} of {shards_total} shards have no owner: their jobs do not start."
        found.append(HealthReason("SHARD_WITHOUT_OWNER", "critical", text, "/ui/alarms"))
    if seen.shards_degraded:
        text = (
            f"No server owns {seen.shards_degraded} of {shards_total} shards: their jobs start from"
            " the store in turn, without fair shares, and how many wait is not known."
        )
        found.append(HealthReason("DEGRADED", "critical", text, "/ui/alarms"))
    for pool in seen.pools:
        found += _of_pool(pool)
    if circuits := seen.restraints.get("circuit"):
        text = f"Open circuits: {circuits}. Jobs that need what is away are parked."
        found.append(HealthReason("CIRCUIT_OPEN", "warning", text, "/ui/restraints"))
    found.sort(key=lambda one: -_RANKS[one.severity])
    return Health(found[0].severity if found else "ok", found)


def with_alarms(health: Health, raised: Iterable[Raised]) -> Health:
    """As bad as the worst of both, and each said once: what an alarm tells, no reason does."""
    found = list(raised)
    told = {(ALARM_CODES.get(one.alarm.name, one.alarm.name), one.subject) for one in found}
    severities: list[Status] = [health.status, *(one.alarm.severity for one in found)]
    in_parts = {code for code, _ in told} & TOLD_IN_PARTS
    reasons = [
        one
        for one in health.reasons
        if (one.code, one.subject) not in told and one.code not in in_parts
    ]
    return Health(max(severities, key=_RANKS.__getitem__), reasons)


def _of_pool(pool: PoolSight) -> list[HealthReason]:
    about = f"pool {pool.name}"
    if pool.queued and not pool.slots:
        waiting = "1 job waits" if pool.queued == 1 else f"{pool.queued} jobs wait"
        text = f"{waiting} in the pool {pool.name}, and no worker serves it."
        return [HealthReason("NO_WORKERS", "critical", text, "/ui/workers", about)]
    found: list[HealthReason] = []
    age = None if pool.oldest_ms is None else pool.oldest_ms / 1000
    if age is not None and age > pool.slo_seconds:
        text = (
            f"The oldest job of the pool {pool.name} that could run has waited {span(age)};"
            f" {span(pool.slo_seconds)} are promised."
        )
        is_far = age > FAR_OVER_SLO * pool.slo_seconds
        found.append(
            HealthReason(
                "OLDEST_AGE_OVER_SLO", "critical" if is_far else "warning", text, "/ui/pools", about
            )
        )
    if pool.held.no_worker and pool.no_worker_ms >= NO_WORKER_MS:
        text = f"{_jobs_wait(pool)} in the pool {pool.name} for a worker that runs their type"
        if pool.no_worker_types:
            text += f", such as {', '.join(pool.no_worker_types[:TYPES_NAMED_MAX])}"
        found.append(
            HealthReason(
                "NO_WORKER_FOR_TYPE", "warning", f"{text}.", "/ui/jobs?state=queued", about
            )
        )
    if is_near_knee(pool):
        text = f"The pool {pool.name} is nearly full: a little more work, and all of it waits."
        found.append(HealthReason("NEAR_KNEE", "warning", text, "/ui/pools", about))
    return found


def _jobs_wait(pool: PoolSight) -> str:
    jobs = pool.held.no_worker
    return "1 job waits" if jobs == 1 else f"{jobs} jobs wait"
