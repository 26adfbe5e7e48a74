"""Real servers on one database: what comes to one that does not own it goes to the owner."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.api.house import House, open_house, problem
from tests.api.worker import HandWorker

from fairway.api.passed_jobs import (
    SUBMIT_PATH,
    OwnerJobs,
    decode_reply,
    encode,
    outcome_of,
    take_passed,
)
from fairway.api.passing import NOT_ASKED, OwnerLine, Passing
from fairway.api.peers import Peers
from fairway.api.waiting_jobs import WaitingJobs
from fairway.cli.processes.listening import listen_at
from fairway.core.ids import JobId, PoolId, ShardId, TenantId, Term, ids_from, shard_of
from fairway.core.job import JobMarks
from fairway.core.lifecycle import State
from fairway.core.unique import UniqueWish, states_of
from fairway.services.platform import Platform
from fairway.services.registry import type_names
from fairway.services.registry.type_names import Brought, Namer
from fairway.services.submit.submission_group import (
    Accepted,
    NewJob,
    WholeKey,
    size_bytes_of,
)
from fairway.store.leadership import Owner

ALL_STATES = states_of(State)


@pytest.fixture(scope="module")
def second(house: House) -> Iterator[House]:
    """A front door: it owns no shard, however many there are."""
    with open_house(house.dsn, owns_shards=False) as other:
        yield other


def home_of(house: House, name: str) -> ShardId:
    tenant = house.platform.directory.id_of(name)
    return house.platform.tenant_shards.of(tenant)


def known_at(server: House, name: str) -> None:
    """A tenant that was made elsewhere is known here."""

    async def refresh(platform: Platform) -> None:
        await platform.directory.refresh()

    server.inside(refresh)
    assert server.platform.directory.id_of(name)


async def test_jobs_come_in_anywhere_and_run_at_once(house: House, second: House) -> None:
    name, key = house.new_tenant()
    known_at(second, name)
    hinted_us = house.platform.dispatcher.hinted_us()
    async with (
        second.caller(key) as far,
        house.caller(key) as near,
        house.caller(house.new_key({"scope": "worker"})) as client,
    ):
        worker = HandWorker(client)
        await worker.hello()
        one = await far.post("/v1/jobs", json={"type": worker.type, "payload": {"n": 1}})
        assert one.status_code == 202, one.text
        assert one.headers["fairway-owner"] == house.url
        assert house.platform.dispatcher.owns(shard_of(one.json()["id"]))
        jobs = [{"type": worker.type, "payload": {"n": n}} for n in range(200)]
        many = await far.post("/v1/jobs/batch", json={"jobs": jobs})
        ids = [item["id"] for item in many.json()["items"]]
        assert len(set(ids)) == 200
        scheduled = await far.post("/v1/jobs", json={"type": worker.type, "delay_seconds": 3600})
        assert scheduled.json()["state"] == "scheduled"
        nearer = await near.post("/v1/jobs", json={"type": worker.type})
        assert "fairway-owner" not in nearer.headers
        assert (await worker.run())["job"] == one.json()["id"]
        assert house.platform.dispatcher.hinted_us() == hinted_us, "nothing was read back"
        await worker.leave()


async def test_a_key_is_one_key_at_every_server(house: House, second: House) -> None:
    name, key = house.new_tenant()
    known_at(second, name)
    job, keyed = {"type": "twice"}, {"idempotency-key": "k1"}
    async with second.caller(key) as far, house.caller(key) as near:
        first = await far.post("/v1/jobs", json=job, headers=keyed)
        again = await near.post("/v1/jobs", json=job, headers=keyed)
        third = await far.post("/v1/jobs", json=job, headers=keyed)
        assert first.json() == again.json() == third.json()
        assert "idempotent-replayed" not in first.headers
        assert again.headers["idempotent-replayed"] == third.headers["idempotent-replayed"]
        other = await far.post("/v1/jobs", json={"type": "twice", "priority": 9}, headers=keyed)
        problem(other, 422, "IDEMPOTENCY_KEY_REUSED")
        batch = {"jobs": [job, {"type": "twice", "priority": 7}, {"type": "no pool", "pool": "x"}]}
        made = await near.post("/v1/jobs/batch", json=batch, headers={"idempotency-key": "b1"})
        sent = await far.post("/v1/jobs/batch", json=batch, headers={"idempotency-key": "b1"})
        assert made.json() == sent.json()
        assert [item["status"] for item in sent.json()["items"]] == [202, 202, 422]
        assert len((await near.get("/v1/jobs")).json()["jobs"]) == 3


async def test_keys_of_a_tenants_own_hold_over_servers(house: House, second: House) -> None:
    """A unique key has one job and a mutex one run, wherever its jobs came in."""
    name, key = house.new_tenant()
    known_at(second, name)
    async with (
        second.caller(key) as far,
        house.caller(key) as near,
        house.caller(house.new_key({"scope": "worker"})) as client,
    ):
        worker = HandWorker(client)
        unique = {"type": worker.type, "unique": {"key": "one"}, "delay_seconds": 3600}
        assert (await far.post("/v1/jobs", json=unique)).status_code == 202
        problem(await near.post("/v1/jobs", json=unique), 409, "NOT_UNIQUE")
        problem(await far.post("/v1/jobs", json=unique), 409, "NOT_UNIQUE")
        await worker.hello(slots=4)
        alone = {"type": worker.type, "limits": [{"key": "mutex", "at_most": 1}]}
        for caller in (far, near, far):
            assert (await caller.post("/v1/jobs", json=alone)).status_code == 202
        lease = await worker.lease()
        await worker.say(wait_ms=300)
        assert not worker.inbox, "two at a time"
        await worker.tell(worker.report(lease))
        await worker.run()
        await worker.leave()


async def test_a_rate_is_one_rate_at_three_servers(house: House, second: House) -> None:
    seconds, rate = 5.0, 20
    name, key = house.new_tenant(rate_per_second=rate, burst=rate)
    with open_house(house.dsn, owns_shards=False) as third:
        servers = (house, second, third)
        for server in servers[1:]:
            known_at(server, name)
        ends_at, refused = time.monotonic() + seconds, []

        async def ask(server: House) -> int:
            accepted = 0
            async with server.caller(key) as caller:
                while time.monotonic() < ends_at:
                    reply = await caller.post("/v1/jobs", json={"type": "pace"})
                    accepted += reply.status_code == 202
                    if reply.status_code == 429:
                        refused.append(reply)
                    await asyncio.sleep(0.03)
            return accepted

        began = time.monotonic()
        counts = await asyncio.gather(*map(ask, servers))
        lasted = time.monotonic() - began
    allowed = rate * lasted
    assert sum(counts) <= 1.1 * allowed + rate, counts
    assert sum(counts) >= 0.9 * allowed, counts
    assert {reply.headers["ratelimit-policy"] for reply in refused} == {'"jobs";q=20;w=1'}
    assert all(reply.headers["ratelimit"].startswith('"jobs";r=0') for reply in refused)


async def test_a_name_that_is_one_too_many_is_refused_where_it_came_in(
    house: House, second: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the owner everybody whose jobs travel in the same call would wait for it; it costs what
    it would cost there."""
    monkeypatch.setattr(type_names, "TENANT_NAMES_MAX", 1)
    name, key = house.new_tenant(rate_per_second=1, burst=5)
    known_at(second, name)
    looked_for: list[Sequence[str]] = []
    bring = house.platform.directory.names.bring

    async def bring_noted(namer: Namer, names: Iterable[str], *, all_or_none: bool) -> Brought:
        looked_for.append([*names])
        return await bring(namer, looked_for[-1], all_or_none=all_or_none)

    monkeypatch.setattr(house.platform.directory.names, "bring", bring_noted)
    async with second.caller(key) as far:
        good = await far.post("/v1/jobs", json={"type": f"{name}.good"})
        assert (good.status_code, good.headers["fairway-owner"]) == (202, house.url)
        for n in range(4):
            refused = await far.post("/v1/jobs", json={"type": f"{name}.{n}"})
            problem(refused, 422, "TOO_MANY_JOB_TYPES", "/type")
        problem(await far.post("/v1/jobs", json={"type": f"{name}.last"}), 429,
                "TENANT_RATE_LIMIT_EXCEEDED")  # fmt: skip
    assert looked_for == [[f"{name}.good"]]


async def test_metadata_weighs_what_payloads_do(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten jobs with 160 KB of it are no light call: who sends one job does not wait for them."""
    job = NewJob("work", PoolId(1), 5, None, b"{}")
    marked = job._replace(marks=JobMarks(None, b'"%s"' % (b"x" * 16_000)))
    assert size_bytes_of([job, marked]) == 16_006
    tenant = house.platform.directory.tenants[house.platform.directory.id_of(house.new_tenant()[0])]
    on_their_way, written = list[bool](), list[bool]()

    async def submit(platform: Platform) -> None:
        line = OwnerLine(platform, Peers(), "http://127.0.0.1:1", WaitingJobs(100, "nobody"))
        silent: Any = SimpleNamespace(add=lambda waiting: None)
        group = platform.submissions._group

        def commit(node: int | None, *, heavy: bool) -> Any:
            on_their_way.append(heavy)
            return silent

        def noted(shard: ShardId | None, together: int | None, heavy: bool) -> Any:
            written.append(heavy)
            return group(shard, together, heavy)

        monkeypatch.setattr(line, "_commit", commit)
        monkeypatch.setattr(platform.submissions, "_group", noted)
        for one in (job, marked):
            line.ask(OwnerJobs(tenant.id, 10, False, 0, JobId(""), None, [one] * 10), None)
            await platform.submissions.submit(tenant, [one] * 10)

    house.inside(submit)
    assert on_their_way == written == [False, True]


async def test_only_servers_pass_jobs_on(house: House) -> None:
    _, key = house.new_tenant()
    for headers in ({}, {"x-fairway-cluster": "guess"}):
        async with house.caller(key) as tenant:
            problem(await tenant.post(SUBMIT_PATH, content=b"", headers=headers), 404, "NOT_FOUND")


async def test_what_our_last_life_owned_is_not_passed_on_to_ourselves(
    house: House, second: House
) -> None:
    """It had our address, and we would only hear from ourselves that we own nothing."""
    name, _ = house.new_tenant()
    known_at(second, name)
    tenant = second.platform.directory.tenants[second.platform.directory.id_of(name)]
    own, shard = second.platform.settings.url, home_of(second, name)

    async def submit(platform: Platform) -> object:
        passing = Passing(platform, Peers(), lambda _: True)
        platform.ownership.owners[shard] = Owner(shard, Term(1), "our last life", own)
        asked = passing._ask(tenant, shard, OwnerJobs(tenant.id, 1, False, 0, JobId(""), None, ()))
        return asked, passing.owner_header({}, tenant)  # in one step: no look at the store between

    assert second.inside(submit) == (None, ())


async def test_an_owner_that_takes_no_line_was_not_asked(house: House, second: House) -> None:
    """Its process has died, and its address is held for the next: limits are judged here."""
    name, _ = house.new_tenant()
    known_at(second, name)
    tenant = second.platform.directory.tenants[second.platform.directory.id_of(name)]
    shard = home_of(second, name)
    with listen_at("127.0.0.1", 0, "--port") as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"

        async def ask(platform: Platform) -> object:
            passing = Passing(platform, Peers(), lambda _: True)
            platform.ownership.owners[shard] = Owner(shard, Term(1), "has died", url)
            call = OwnerJobs(tenant.id, 1, False, 0, JobId(""), None, ())
            asked = passing._ask(tenant, shard, call)
            assert asked is not None
            return await asked

        assert second.inside(ask) == NOT_ASKED


def test_a_call_that_only_asks_to_be_let_in_is_understood() -> None:
    """An answer that is not would be taken for none, and its owner be left alone for a while."""
    call = OwnerJobs(TenantId(1), 3, False, 0, JobId(""), None, ())
    assert outcome_of(call, None) == []


@pytest.mark.parametrize("kind", ["plain", "keyed", "mixed", "whole", "unique"])
async def test_what_both_servers_write_is_there_once(
    house: House, second: House, kind: str
) -> None:
    """The owner comes too late: the server that asked has written by itself, with the same ids."""
    name, key = house.new_tenant()
    known_at(second, name)
    directory = house.platform.directory
    tenant, shard = directory.tenants[directory.id_of(name)], home_of(house, name)
    async with house.caller(house.new_key({"scope": "worker"})) as client:
        worker = HandWorker(client)
        await worker.hello(slots=4)
        call = passed(second, tenant.id, shard, kind, worker.type)
        submit = second.platform.submissions.submit
        ids = ids_from(call.first, call.count)

        async def write(_: Platform) -> object:
            return await submit(tenant, call.jobs, is_admitted=True, whole=call.whole, ids=ids)

        async def take(platform: Platform) -> bytes:
            return await take_passed(platform, lambda shard: False, encode([call, call]))

        assert [one.id for one in second.inside(write)] == ids
        ran = [await worker.run() for _ in ids]
        said = decode_reply(house.inside(take))
        assert [outcome_of(call, one) for one in said.items] == [[Accepted(id_) for id_ in ids]] * 2
        await worker.say(wait_ms=100)
        assert not worker.inbox, "none of them runs again"
        assert sorted(lease["job"] for lease in ran) == ids
        await worker.leave()
    async with house.caller(key) as caller:
        assert len((await caller.get("/v1/jobs")).json()["jobs"]) == len(ids)


def passed(front: House, tenant: TenantId, shard: ShardId, kind: str, type_: str) -> OwnerJobs:
    """Two jobs, as this server would pass them on."""
    new = NewJob(type_, PoolId(1), 5, None, b"{}")
    if kind == "keyed":
        jobs = [new._replace(idempotency_key=f"k{n}", body_hash=b"h") for n in range(2)]
    elif kind == "mixed":
        jobs = [new._replace(idempotency_key="m", body_hash=b"h"), new]
    elif kind == "unique":
        waits = UniqueWish(b"d0", ALL_STATES)
        jobs = [new._replace(unique=waits._replace(digest=b"d%d" % n)) for n in range(2)]
    else:
        jobs = [new, new]
    whole = WholeKey("b\x1f", b"h") if kind == "whole" else None
    first = front.platform.job_ids.make(shard, 2)[0]
    return OwnerJobs(tenant, 2, True, 0, first, whole, jobs)
