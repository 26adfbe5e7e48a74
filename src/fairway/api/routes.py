"""Every endpoint there is, by its heading. Routes, `Allow`, OpenAPI and `/docs` are made from this.

A new endpoint in one of these modules is in the table by itself; only a new module is added here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import ModuleType

from fairway.api.billing import prices, spend_caps, statements, usage
from fairway.api.dashboard import sign_ins
from fairway.api.endpoint import Endpoint, endpoints_of
from fairway.api.events import event_log, socket, stream
from fairway.api.insight import alarm_webhooks, alarms, history, live, marks, overview, servers
from fairway.api.jobs import (
    bulk_actions,
    dead_letters,
    events,
    explain,
    flows,
    job_logs,
    jobs,
    listing,
    restraints,
    schedules,
    submit,
    submit_batch,
    uploads,
    wait_many,
)
from fairway.api.operators import (
    audit,
    autoscale,
    health,
    keys,
    limits,
    pauses,
    pools_and_types,
    regions,
    shards,
    tenant_states,
    tenants,
)
from fairway.api.operators import workers as workers_list
from fairway.api.webhooks import webhooks
from fairway.api.workers import checkpoints, exchange, payloads, run_logs


@dataclass(frozen=True, slots=True)
class Group:
    """Endpoints that belong together, under one heading."""

    name: str
    about: str
    modules: tuple[ModuleType, ...]

    @property
    def operations(self) -> tuple[Endpoint, ...]:
        return tuple(one for one in endpoints_of(self.modules) if one.is_public)


GROUPS = (
    Group(
        "Jobs",
        "Submit work and hear what became of it. These need a tenant's key.",
        (
            *(submit, submit_batch, listing, jobs, uploads, wait_many, events, explain),
            *(job_logs, bulk_actions),
        ),
    ),
    Group(
        "Flows",
        "Jobs that wait for others: chains, groups with a callback. These need a tenant's key.",
        (flows,),
    ),
    Group(
        "Schedules",
        "Jobs that come again and again, by cron or by interval. These need a tenant's key.",
        (schedules,),
    ),
    Group(
        "Webhooks",
        "Events of your log, sent to receivers of your own. These need a tenant's key.",
        (webhooks,),
    ),
    Group(
        "Failures",
        "What failed for good, and what holds failing jobs back. These need a tenant's key.",
        (dead_letters, restraints),
    ),
    Group(
        "Events",
        "A log of what happened, in order, to be followed. These need a tenant's key.",
        (event_log, stream, socket),
    ),
    Group(
        "Usage and prices",
        "What was used, what a month came to, what may be spent. A tenant's or an operator's key.",
        (usage, statements, prices, spend_caps),
    ),
    Group(
        "Insight",
        "The platform as it is, live, and as it was. An operator's key, or a tenant's for its own.",
        (overview, live, history, alarms, alarm_webhooks, marks, servers),
    ),
    Group(
        "Workers",
        "Run jobs in any language, with a worker's key; look after workers, with the operator's.",
        (exchange, checkpoints, payloads, run_logs, workers_list, autoscale),
    ),
    Group(
        "Operators",
        "Tenants, tiers, pauses, pools, job types, keys, shards, regions. Most need the operator's"
        " key, which `fairway up` shows when it makes it and keeps in `client.json` of its data"
        " folder.",
        (tenants, tenant_states, limits, pauses, pools_and_types, keys, shards, regions, audit),
    ),
    Group("Machines", "Health and metrics. These need no key.", (health,)),
    Group(
        "Signing in",
        "What the dashboard at `/ui` does for people: a key shown once opens a session, whose"
        " cookie stands for it but at what is for workers. Programs send their key instead.",
        (sign_ins,),
    ),
)
ENDPOINTS = tuple(one for group in GROUPS for one in endpoints_of(group.modules))
OPERATIONS = tuple(one for one in ENDPOINTS if one.is_public)


def allowed_methods(path: str) -> list[str]:
    """The methods that a path takes; none for a path that there is not."""
    named = {op.method for op in OPERATIONS if op.path == path}
    found = named or {op.method for op in OPERATIONS if _PATTERNS[op.path].fullmatch(path)}
    return sorted(found | {"HEAD"} if "GET" in found else found)


_PATTERNS = {op.path: re.compile(re.sub(r"\{\w+\}", "[^/]+", op.path)) for op in OPERATIONS}

#: Paths that are names from end to end, with their methods: none of them is ever taken for an id.
NAMED: dict[str, frozenset[str]] = {
    op.path: frozenset(allowed_methods(op.path)) for op in OPERATIONS if "{" not in op.path
}
