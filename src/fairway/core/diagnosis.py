"""What is wrong with a platform now, the worst first: a pure judgement of what was seen.

Each finding says what helps, as a command. Facts that could not be had are None, and judged by
nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from fairway.core.insight.spans import span

OLD_SECONDS = 60.0  # a queue whose oldest job waits longer than this is behind
SKEW_SECONDS = 1.0
STALL_SECONDS = 0.5
DISK_LEFT_SHARE = 0.1
DISK_LEFT_BYTES = 1 << 30
NEAR_LIMIT_SHARE = 0.9
GROUPS_TOLD = 3
TENANTS_TOLD = 5


class Pain(IntEnum):
    """How much it hurts; what stops everybody comes before what stops some."""

    DOWN = 0  # nothing runs, or nothing is taken in
    STUCK = 1  # some jobs do not run at all
    FAILING = 2  # jobs run, and fail
    SLOW = 3  # jobs run, late
    NOTE = 4  # nothing is wrong yet


class Ailment(NamedTuple):
    pain: Pain
    what: str
    helps: str = ""  # a command


class PoolLoad(NamedTuple):
    queued: int
    running: int
    slots: int
    oldest_seconds: float


class DeadGroup(NamedTuple):
    type: str
    letters: int
    fingerprint: str
    error: str
    last_seconds: float  # since its last death


@dataclass(frozen=True, kw_only=True)
class Signs:
    """What was seen. `waiting` is by job type: how many of those looked at, and why."""

    is_answering: bool = True
    failing_checks: tuple[str, ...] = ()
    gone_servers: Mapping[str, float] = field(default_factory=dict)  # did not leave; silent so long
    owners: tuple[str, ...] = ()  # servers that own shards now
    unowned_shards: int = 0
    pools: Mapping[str, PoolLoad] = field(default_factory=dict)
    workers: int | None = None
    silent_workers: tuple[str, ...] = ()
    draining_workers: tuple[str, ...] = ()
    waiting: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    pauses: tuple[str, ...] = ()
    capped: tuple[str, ...] = ()  # tenants whose spend caps hold their jobs
    suspended: tuple[str, ...] = ()  # tenants
    moving: tuple[tuple[str, str], ...] = ()  # to another shard: a tenant, and what that waits for
    circuits: tuple[tuple[str, str], ...] = ()  # type, dependency
    quarantines: tuple[str, ...] = ()
    restraints: Mapping[str, int] = field(default_factory=dict)  # of all tenants, by kind
    dead: tuple[DeadGroup, ...] = ()
    depth: tuple[int, int] | None = None  # jobs that wait, and as many as may
    clock_skew_seconds: float = 0.0
    stall_seconds: float = 0.0
    storage_failures: int = 0
    usage_aside: int = 0  # rows of the log of usage that could not be booked
    disk: tuple[int, int] | None = None  # bytes left, of all
    regions_away: tuple[str, ...] = ()
    region_troubles: Mapping[str, str] = field(default_factory=dict)  # beside their silence
    held_jobs: int = 0  # in this region, for others
    held_in_doubt: int = 0  # of those, what a region may have that gave no answer


def ailments(signs: Signs) -> list[Ailment]:
    """All that is wrong, the worst first."""
    if not signs.is_answering:
        return [Ailment(Pain.DOWN, "No server answers.", "fairway check")]
    found = [
        *_of_servers(signs),
        *_of_gone_servers(signs),
        *_of_regions(signs),
        *_of_workers(signs),
        *_of_waiting(signs),
        *_of_restraints(signs),
        *_of_tenants(signs),
        *_of_failures(signs),
        *_of_pools(signs),
    ]
    return sorted(found, key=lambda one: one.pain)


CHECKS = {
    "database": "The database does not answer.",
    "jobs_writable": "Jobs cannot be written: their table is locked, or the store is read-only.",
    "shards_open": "No server gives out the jobs of some shards, or of all.",
}


def _of_servers(signs: Signs) -> list[Ailment]:
    found = [
        Ailment(Pain.DOWN, CHECKS.get(name, f"The check {name} does not hold."), "fairway check")
        for name in signs.failing_checks
    ]
    if signs.disk is not None:
        left, whole = signs.disk
        if left < DISK_LEFT_BYTES or left < whole * DISK_LEFT_SHARE:
            pain = Pain.DOWN if left < DISK_LEFT_BYTES >> 4 else Pain.SLOW
            what = f"The disk of the data folder has {left >> 20} MB left of {whole >> 20} MB."
            found.append(Ailment(pain, what, "df -h"))
    if signs.storage_failures:
        what = f"Object storage failed {signs.storage_failures} times since this server started."
        found.append(Ailment(Pain.NOTE, what, "fairway check"))
    if signs.usage_aside:
        what = (
            f"{signs.usage_aside} row{_s(signs.usage_aside)} of usage could not be booked since"
            " this server started: they are in no bill."
        )
        helps = 'psql -c "SELECT shard, id, refused FROM usage_log WHERE refused IS NOT NULL"'
        found.append(Ailment(Pain.NOTE, what, helps))
    if abs(signs.clock_skew_seconds) > SKEW_SECONDS:
        what = f"The clocks of server and database are {span(abs(signs.clock_skew_seconds))} apart."
        found.append(Ailment(Pain.SLOW, what, "timedatectl"))
    if signs.stall_seconds > STALL_SECONDS:
        what = f"The server stood still for {span(signs.stall_seconds)} within the last minute."
        found.append(Ailment(Pain.SLOW, what, "uptime"))
    return found


def _of_gone_servers(signs: Signs) -> list[Ailment]:
    """Whoever stops in order is on no list any more: these died, or are cut off."""
    if not signs.gone_servers:
        return []
    names = tuple(sorted(signs.gone_servers, key=lambda name: signs.gone_servers[name]))
    several, last = len(names) > 1, span(signs.gone_servers[names[0]])
    what = f"Server{_s(len(names))} {_some(names)} stopped answering"
    what += f", the last {last} ago," if several else f" {last} ago"
    what += f" without having left; {_whose_shards(signs, 'their' if several else 'its')}."
    return [Ailment(Pain.STUCK if signs.unowned_shards else Pain.NOTE, what, "fairway servers")]


def _whose_shards(signs: Signs, their: str) -> str:
    if signs.unowned_shards:
        verb = "has" if signs.unowned_shards == 1 else "have"
        return f"{signs.unowned_shards} shard{_s(signs.unowned_shards)} {verb} no owner now"
    if len(signs.owners) == 1:
        return f"{their} shards are with {signs.owners[0]}"
    return f"others took {their} shards"


def _of_workers(signs: Signs) -> list[Ailment]:
    if signs.workers is None:
        return []
    found = []
    if not signs.workers:
        waits = sum(load.queued for load in signs.pools.values())
        pain = Pain.DOWN if waits else Pain.NOTE
        what = (
            f"There is no worker, with {_jobs(waits)} waiting." if waits else "There is no worker."
        )
        found.append(Ailment(pain, what, "fairway worker module:app"))
    for name in signs.silent_workers:
        what = f"The worker {name} has been silent for a while: is it dead, or cut off?"
        found.append(Ailment(Pain.STUCK, what, "fairway worker ls"))
    for name in signs.draining_workers:
        what = f"The worker {name} drains: it takes no more jobs."
        found.append(Ailment(Pain.NOTE, what, "fairway worker ls"))
    return found


def _of_waiting(signs: Signs) -> list[Ailment]:
    """Why jobs of a type wait: only what somebody can do something about."""
    helps = {
        "no_worker": ("no live worker runs that type", "fairway worker module:app"),
        "labels": ("no worker has the labels that its pool asks for", "fairway pools"),
        "checkpoint_store": ("object storage does not answer", "fairway check"),
    }
    return [
        Ailment(Pain.STUCK, f"{_jobs(count)} of {type_} waiting: {helps[why][0]}.", helps[why][1])
        for type_, (count, why) in sorted(signs.waiting.items())
        if why in helps
    ]


def _of_restraints(signs: Signs) -> list[Ailment]:
    found = [
        Ailment(
            Pain.STUCK,
            f"{dependency} is away, says {type_}: its jobs are parked.",
            "fairway restraints",
        )
        for type_, dependency in signs.circuits
    ]
    found += [
        Ailment(
            Pain.FAILING,
            f"{type_} is in quarantine: it mostly fails.",
            f"fairway dead ls --type {type_}",
        )
        for type_ in signs.quarantines
    ]
    found += [Ailment(Pain.STUCK, f"Paused: {what}.", "fairway pauses") for what in signs.pauses]
    told = len(signs.circuits) + len(signs.quarantines)
    others = sum(signs.restraints.values()) - told
    if others > 0:
        kinds = ", ".join(f"{count} {kind}" for kind, count in signs.restraints.items() if count)
        found.append(Ailment(Pain.FAILING, f"In force for tenants: {kinds}.", "fairway restraints"))
    return found


def _of_regions(signs: Signs) -> list[Ailment]:
    found = []
    for name, trouble in signs.region_troubles.items():
        pain = Pain.STUCK if name in signs.regions_away else Pain.NOTE
        found.append(Ailment(pain, f"The region {name} {trouble}.", "fairway region ls"))
    silent = tuple(name for name in signs.regions_away if name not in signs.region_troubles)
    if silent:
        several = len(silent) > 1
        what = (
            "No server of these regions answers" if several else "No server of the region answers"
        )
        what += f": {_some(silent)}."
        if signs.held_jobs:
            are = "is" if signs.held_jobs == 1 else "are"
            what += f" {_jobs(signs.held_jobs)} for tenants of other regions {are} held here."
        found.append(Ailment(Pain.STUCK, what, "fairway region ls"))
    elif signs.held_jobs:
        way, pain = ("", Pain.STUCK) if signs.regions_away else (", on the way there", Pain.SLOW)
        what = f"{_jobs(signs.held_jobs)} held here for other regions{way}."
        found.append(Ailment(pain, what, "fairway region ls"))
    if signs.held_in_doubt:
        what = (
            f"{_jobs(signs.held_in_doubt)} in doubt: only the region that was asked to take them"
            " can say whether it has."
        )
        found.append(Ailment(Pain.STUCK, what, "fairway region ls"))
    return found


def _of_tenants(signs: Signs) -> list[Ailment]:
    """Whom the platform holds as a whole."""
    found = []
    if signs.capped:
        what = f"Spend caps are reached, and no more jobs start: {_some(signs.capped)}."
        whose = "" if signs.workers is None else f" {signs.capped[0]}"  # who sees none is a tenant
        found.append(Ailment(Pain.STUCK, what, f"fairway spend-cap{whose}"))
    if signs.suspended:
        what = f"Suspended: {_some(signs.suspended)}."
        found.append(Ailment(Pain.NOTE, what, "fairway tenants ls --state suspended"))
    for tenant, note in signs.moving:
        what = f"{tenant} stands still: it is being moved to another shard. {note}".rstrip()
        found.append(Ailment(Pain.STUCK, what, "fairway shards ls"))
    return found


def _of_failures(signs: Signs) -> list[Ailment]:
    found = []
    for group in signs.dead[:GROUPS_TOLD]:
        fresh = group.last_seconds < 3600
        what = (
            f"{group.letters} dead letter{_s(group.letters)} of {group.type}, the last"
            f" {span(group.last_seconds)} ago: {group.error}"
        )
        helps = f"fairway dead ls --fingerprint {group.fingerprint}"
        found.append(Ailment(Pain.FAILING if fresh else Pain.NOTE, what, helps))
    if len(signs.dead) > GROUPS_TOLD:
        what = f"{len(signs.dead) - GROUPS_TOLD} more causes of dead letters."
        found.append(Ailment(Pain.NOTE, what, "fairway dead groups"))
    if signs.depth is not None and signs.depth[0] >= signs.depth[1] * NEAR_LIMIT_SHARE:
        what = f"{_jobs(signs.depth[0])} waiting, {signs.depth[1]} may: more get a 429."
        found.append(Ailment(Pain.STUCK, what, "fairway limits"))
    return found


def _of_pools(signs: Signs) -> list[Ailment]:
    if signs.workers == 0:
        return []  # that was told, and explains it
    found = []
    for name, load in signs.pools.items():
        if load.queued and not load.slots and signs.workers is not None:
            what = f"{_jobs(load.queued)} waiting in the pool {name}, and no worker serves it."
            found.append(Ailment(Pain.STUCK, what, f"fairway worker module:app --pool {name}"))
        elif load.queued and load.oldest_seconds > OLD_SECONDS:
            what = (
                f"The oldest of {_jobs(load.queued)} in the pool {name} has waited"
                f" {span(load.oldest_seconds)}; {load.running} of {load.slots} slots are in use."
            )
            found.append(Ailment(Pain.SLOW, what, "fairway worker ls"))
    return found


def _some(names: tuple[str, ...]) -> str:
    more = len(names) - TENANTS_TOLD
    told = ", ".join(names[:TENANTS_TOLD])
    return f"{told} and {more} more" if more > 0 else told


def _jobs(count: int) -> str:
    return f"{count} job{_s(count)}"


def _s(count: int) -> str:
    return "" if count == 1 else "s"
