"""All that a worker says has a bound: cut where people only read it, refused by name where not."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.jobs.test_jobs import submit
from tests.api.payloads.test_body_cost import nobody_held_up
from tests.api.worker import HandWorker
from tests.api.workers.test_exchange import UNKNOWN

from fairway.services.workers.worker_list import life_of
from fairway.wire.bounds import (
    BUILD_CHARACTERS_MAX,
    LABELS_MAX,
    LIMIT_CHARACTERS_MAX,
    LIMITS_MAX,
    NUMBER_MAX,
    POOLS_MAX,
    PROGRESS_BYTES_MAX,
    SLOTS_MAX,
    UNHEARD_MAX,
    WARM_KEYS_MAX,
)


async def test_what_people_only_read_is_cut(
    operator: httpx2.AsyncClient, worker: HandWorker
) -> None:
    hello = {
        "types": [{"name": worker.type}], "slots": {"short": 0}, "build": "b" * 1_000_000,
        "limits": {f"limit {n}": "l" * 1_000 for n in range(10_000)},
    }  # fmt: skip
    await worker.say(hello=hello, running=[])
    workers = (await operator.get("/v1/workers")).json()["workers"]
    (seen,) = [one for one in workers if one["life"] == life_of(worker.session)]
    assert seen["build"] == "b" * (BUILD_CHARACTERS_MAX - 1) + "…"
    assert len(seen["limits"]) == LIMITS_MAX
    assert {len(held) for held in seen["limits"].values()} == {LIMIT_CHARACTERS_MAX}


async def test_progress_too_large_to_keep_is_not_shown(
    tenant: httpx2.AsyncClient, worker: HandWorker
) -> None:
    await worker.hello()
    location = await submit(tenant, worker.type)
    lease = await worker.lease()
    most = "p" * (PROGRESS_BYTES_MAX - 2)
    for said, shown in (
        (most, most),
        (most + "p", {"omitted": "4097 bytes; at most 4096 are kept"}),
    ):
        await worker.say(running=[worker.holding(lease, progress=said)])
        assert (await tenant.get(location)).json()["progress"] == shown
    await worker.tell(worker.report(lease))


@pytest.mark.parametrize("more", [{"ran_us": 1 << 62}, {"delay_ms": 1 << 62}], ids=str)
@pytest.mark.parametrize("kind", ["snoozed", "failed"])
async def test_a_time_beyond_all_measure_is_cut(
    tenant: httpx2.AsyncClient, worker: HandWorker, kind: str, more: dict[str, int]
) -> None:
    """A worker that says it again and again must not be refused for it, nor end in an error."""
    await worker.hello()
    location = await submit(tenant, worker.type)
    lease = await worker.lease()
    failure = {"failure": "dependency"} if kind == "failed" else {}
    report = worker.report(lease, kind, **failure) | {"delay_ms": 3_600_000} | more
    assert (await worker.tell(report))["recorded"] == [report["n"]]
    job = (await tenant.get(location)).json()
    assert job["state"] == "scheduled"
    assert job["history"][0]["ran_seconds"] < 100


HELLO: dict[str, Any] = {"types": [], "slots": {}}
REPORT: dict[str, Any] = {
    "n": 1, "job": UNKNOWN, "tenant": "nobody", "epoch": 1, "token": "0" * 32, "kind": "succeeded",
    "ran_us": 1,
}  # fmt: skip
MANY_POOLS = {f"p{n}": 1 for n in range(POOLS_MAX + 1)}


@pytest.mark.parametrize(
    ("message", "pointer"),
    [
        ({"hello": HELLO | {"labels": ["x"] * (LABELS_MAX + 1)}}, "/hello/labels"),
        ({"hello": HELLO | {"warm_keys": ["x"] * (WARM_KEYS_MAX + 1)}}, "/hello/warm_keys"),
        ({"hello": HELLO | {"slots": MANY_POOLS}}, "/hello/slots"),
        ({"hello": HELLO | {"slots": {"short": SLOTS_MAX, "long": 1}}}, "/hello/slots"),
        ({"hello": HELLO | {"labels": ["x" * 129]}}, "/hello/labels/0"),
        ({"hello": HELLO | {"warm_keys": ["x" * 129]}}, "/hello/warm_keys/0"),
        ({"hello": HELLO | {"types": [{"name": "t" * 129}]}}, "/hello/types/0/name"),
        (
            {"hello": HELLO | {"types": [{"name": "t", "version": "v" * 129}]}},
            "/hello/types/0/version",
        ),
        (
            {"hello": HELLO | {"types": [{"name": "t", "dependency": "d" * 129}]}},
            "/hello/types/0/dependency",
        ),
        ({"call": NUMBER_MAX + 1}, "/call"),
        ({"wait_ms": 10**400}, "/wait_ms"),
        ({"wait_ms": -1}, "/wait_ms"),
        ({"reports": [REPORT | {"n": 1 << 64}]}, "/reports/0/n"),
        ({"reports": [REPORT | {"ran_us": -1}]}, "/reports/0/ran_us"),
    ],
    ids=lambda said: str(said)[:40],
)
async def test_what_decides_something_is_refused_by_its_name(
    worker: HandWorker, message: dict[str, Any], pointer: str
) -> None:
    problem(await worker.post(**message), 422, "INVALID_REQUEST", pointer)


async def test_a_worker_with_as_many_slots_as_may_be_can_say_all_that_it_holds(
    house: House, worker: HandWorker
) -> None:
    """After a restart of the server, say: with all its slots in use and as much to report."""
    held = [f"01890000-0000-7000-8000-{n:012x}" for n in range(SLOTS_MAX + UNHEARD_MAX)]
    nothing = {"tenant": "nobody", "epoch": 1, "token": "0" * 32}
    running = [{"job": job, "ended": n >= SLOTS_MAX, **nothing} for n, job in enumerate(held)]
    reports = [REPORT | {"n": n, "job": held[-n]} for n in range(1, 1_000)]
    hello = {"types": [{"name": worker.type}], "slots": {"short": SLOTS_MAX}}
    async with nobody_held_up(house):
        reply = await worker.post(hello=hello, running=running, reports=reports)
    assert reply.status_code == 200
    assert set(reply.json()["revoked"]) == set(held)
    assert (await worker.post(draining=True, goodbye=True)).status_code == 200


@pytest.mark.parametrize("name", ["#99999999999", "#2147483648", "#" + "9" * 5000, "#٣"])
async def test_a_tenant_that_cannot_be_is_nobody(worker: HandWorker, name: str) -> None:
    await worker.hello()
    heard = await worker.say(reports=[REPORT | {"tenant": name}])
    assert heard["refused"] == [1]
    heard = await worker.hello(running=[worker.holding(REPORT | {"tenant": name})])
    assert heard["revoked"] == [UNKNOWN]


@pytest.mark.parametrize(
    "message",
    [
        {"reports": [REPORT | {"job": "j" * 100_000, "kind": "snoozed"}]},
        {"running": [{"job": "j" * 100_000, "tenant": "t", "epoch": 1, "token": "0" * 32}]},
        {"reports": [REPORT | {"kind": "k" * 100_000}]},
        {"reports": [REPORT | {"kind": "failed", "failure": "f" * 100_000}]},
    ],
    ids=["job of a report", "job of a holding", "kind", "failure"],
)
async def test_a_refusal_does_not_say_all_of_it_again(
    worker: HandWorker, message: dict[str, Any]
) -> None:
    reply = await worker.post(**message)
    problem(reply, 422, "INVALID_REQUEST")
    assert len(reply.content) < 2_000
