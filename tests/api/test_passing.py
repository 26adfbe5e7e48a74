"""Real servers on one database: what comes to one that does not own it goes to the owner."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import httpx2
import pytest
from tests.api.house import House, open_house, problem
from tests.api.worker import HandWorker

from fairway.api import passing
from fairway.api.passed_jobs import SUBMIT_PATH, PassedJobs, encode
from fairway.core.ids import JobId, ShardId, TenantId, shard_for_tenant, shard_of
from fairway.services.submit.submission_group import NewJob


@pytest.fixture(scope="module")
def second(house: House) -> Iterator[House]:
    with open_house(house.dsn) as other:
        yield other


def tenant_of(owner: House, **terms: object) -> tuple[str, str]:
    """A tenant whose shard is this server's: its name and its key."""
    while True:
        name, key = owner.new_tenant(**terms)
        if owner.platform.dispatcher.owns(home_of(owner, name)):
            return name, key


def home_of(house: House, name: str) -> ShardId:
    tenant = house.platform.directory.id_of(name)
    return shard_for_tenant(tenant, house.platform.cluster.shard_count)


def known_at(server: House, name: str) -> None:
    """A tenant that was made elsewhere is known here."""

    async def refresh(platform: object) -> None:
        await server.platform.directory.refresh()

    server.inside(refresh)
    assert server.platform.directory.id_of(name)


async def test_jobs_come_in_anywhere_and_run_at_once(house: House, second: House) -> None:
    name, key = tenant_of(house)
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
        later = {"type": worker.type, "delay_seconds": 3600}
        scheduled = await far.post("/v1/jobs", json=later)
        assert scheduled.json()["state"] == "scheduled"
        nearer = await near.post("/v1/jobs", json={"type": worker.type})
        assert "fairway-owner" not in nearer.headers
        assert house.platform.dispatcher.hinted_us() == hinted_us, "nothing was read back"
        await worker.leave()
