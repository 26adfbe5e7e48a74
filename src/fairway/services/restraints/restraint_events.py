"""Restraints in words: the events by which a tenant hears of them."""

from __future__ import annotations

from fairway.core.events.event import NewEvent
from fairway.core.ids import PoolId, TypeId
from fairway.services.failure.failure_policy import RestraintChange
from fairway.services.registry.tenants_and_keys import Directory

_KINDS = {
    ("circuit", True): (
        "circuit.opened",
        "{name} failed for most jobs of type {subject}: they wait, nothing is counted against"
        " them, and a few are tried now and then until it is back.",
    ),
    ("circuit", False): (
        "circuit.closed",
        "{name} is back: jobs of type {subject} run again.",
    ),
    ("quarantine", True): (
        "quarantine.imposed",
        "Most jobs of type {subject} failed within the last hour: each is tried at most twice"
        " until several in a row go well.",
    ),
    ("quarantine", False): (
        "quarantine.lifted",
        "Jobs of type {subject} go well again and have all their attempts.",
    ),
    ("recycling", True): (
        "recycling.throttled",
        "Your jobs in the pool {subject} killed too many worker processes: they start one at a"
        " time until this stops.",
    ),
    ("recycling", False): (
        "recycling.restored",
        "Your jobs in the pool {subject} start as before.",
    ),
}


async def event_of(change: RestraintChange, directory: Directory) -> NewEvent:
    kind, sentence = _KINDS[change.kind, change.is_on]
    if change.kind == "recycling":
        subject = directory.pools.by_number[PoolId(change.subject)].name
    else:
        subject = await directory.type_name(TypeId(change.subject))
    detail = sentence.format(subject=subject, name=change.dependency)
    return NewEvent(change.tenant, kind, subject, detail)
