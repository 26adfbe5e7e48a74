"""Jobs that arrive together leave a backlog as they would if each had come by itself."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.core.backlog.test_backlog import LIMITS, POOL, make
from tests.properties import tried

from fairway.core.backlog.backlog import Backlog
from fairway.core.backlog.holds import Hold, Holds
from fairway.core.backlog.streams import Stream
from fairway.core.ids import TenantId, TypeId
from fairway.core.job import QueuedJob

HELD = Holds([Hold(type=TypeId(2))])
JOBS = st.builds(
    make,
    st.integers(0, 40),
    size=st.sampled_from([0, 2, 2, 2, 300, 900]),
    tenant=st.sampled_from([TenantId(1), TenantId(1), TenantId(2)]),
    type=st.sampled_from([TypeId(1), TypeId(1), TypeId(1), TypeId(2)]),
    priority=st.sampled_from([5, 5, 5, 1]),
    lane=st.sampled_from([0, 0, 0, 7]),
)
#: What happens between two groups: a stream is read, its read ends, jobs are taken.
BETWEEN = st.lists(st.sampled_from(["read", "read up to", "take", "nothing"]), max_size=3)


def state_of(stream: Stream) -> dict[str, Any]:
    fields = ("cursor", "more", "missed", "reading", "rewound", "late", "blocked")
    return {"window": list(stream.window), **{name: getattr(stream, name) for name in fields}}


def all_of(backlog: Backlog) -> dict[str, Any]:
    windows, tenants = backlog.windows, backlog._tenants
    streams = [one for tenant in tenants.values() for one in tenant.streams.values()]
    return {
        "streams": {one.key: state_of(one) for one in streams},
        "held": (windows.jobs_held, windows.bytes_held),
        "tenants": {key: (tenant.depth, tenant.ready) for key, tenant in tenants.items()},
    }


def go_on(backlog: Backlog, steps: list[str]) -> None:
    for step in steps:
        for tenant in backlog._tenants.values():
            for stream in tenant.streams.values():
                if step == "read":
                    stream.reading = True
                elif step == "read up to" and stream.reading:
                    stream.reading = stream.missed = stream.rewound = stream.more = False
                    stream.read_up_to(None)
        if step == "take":
            take = backlog.taker(POOL, {TypeId(1), TypeId(2)}, (), lambda tenant: None, 0)
            take(TenantId(1))


ARRIVALS = st.lists(
    st.tuples(st.lists(JOBS, max_size=14, unique_by=lambda job: job.id), BETWEEN), max_size=4
)


@tried(150)
@given(ARRIVALS, st.booleans())
def test_a_batch_is_as_its_jobs_one_by_one(
    arrivals: list[tuple[list[QueuedJob], list[str]]], is_held: bool
) -> None:
    together, apart = (Backlog(LIMITS, lambda pool: False) for _ in range(2))
    for jobs, steps in arrivals:
        woken = together.arrived(jobs, 0)
        assert woken == set[Any]().union(*(apart.arrived([job], 0) for job in jobs))
        assert all_of(together) == all_of(apart)
        for backlog in (together, apart):
            if is_held:
                backlog.runnable.set_holds(HELD)
            go_on(backlog, steps)
