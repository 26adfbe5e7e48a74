"""Alarms over HTTP, from a real loss to `GET /v1/alarms`, the overview and the metrics."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
from tests.api.house import House
from tests.api.worker import HandWorker

from fairway.core.backpressure.connections import STAFF
from fairway.core.ids import FIRST_SHARD
from fairway.core.insight.alarms import ALARMS
from fairway.services.platform import Platform
from fairway.store.webhooks.webhooks import SettledWebhook, settle_webhooks

(LOST,) = [alarm for alarm in ALARMS if alarm.name == "WORKERS_LOST"]


async def look_now(platform: Platform) -> None:
    """Not in some seconds."""
    for name in ("gauges", "alarms"):
        platform.loops[name].wake()


async def raised(
    house: House, operator: httpx2.AsyncClient, path: str, name: str = LOST.name
) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            house.inside(look_now)
            body = (await operator.get(path)).json()
            for one in body.get("items") or body.get("alarms") or ():
                if one["name"] == name:
                    found: dict[str, Any] = one
                    return found
            await asyncio.sleep(0.1)


async def test_a_worker_that_is_lost_with_its_job_is_told(
    house: House, operator: httpx2.AsyncClient, tenant: httpx2.AsyncClient
) -> None:
    key = (await operator.post("/v1/keys", json={"scope": "worker"})).json()
    async with house.caller(key["api_key"]) as client:
        worker = HandWorker(client)
        await worker.hello()
        await tenant.post("/v1/jobs", json={"type": worker.type})
        await worker.lease()
        house.inside(look_now)
        assert (await operator.delete(f"/v1/keys/{key['id']}")).status_code == 204
    one = await raised(house, operator, "/v1/alarms")
    assert one["severity"] == "warning"
    assert one["subject"] == "platform"
    assert one["value"] >= 1 > one["threshold"] == 0
    assert one["runbook"] == LOST.runbook
    assert one["link"] == LOST.link
    assert "lost with dead or silent workers" in one["text"]
    assert one["since"].endswith("Z")
    assert (await raised(house, operator, "/v1/overview")).keys() == one.keys()
    metrics = (await operator.get("/metrics")).text
    assert 'fairway_alarms{name="WORKERS_LOST",severity="warning"} 1.0' in metrics


async def test_a_receiver_of_alarms_that_was_given_up_is_an_alarm(
    house: House, operator: httpx2.AsyncClient
) -> None:
    url = "https://1.1.1.1/s3cret"
    made = (await operator.post("/v1/alarms/webhooks", json={"url": url})).json()
    place = f"/v1/alarms/webhooks/{made['id']}"

    async def give_up(platform: Platform) -> None:
        gone = SettledWebhook(STAFF, made["id"], 9, None, 0.0, "It answers 410.")
        async with platform.database.background() as connection:
            await settle_webhooks(connection, FIRST_SHARD, [gone])

    house.inside(give_up)
    try:
        one = await raised(house, operator, "/v1/alarms", "ALARM_WEBHOOK_OFF")
        assert one["subject"] == f"webhook {made['id']}"
        assert one["text"].endswith("no more. It answers 410.")
        assert "s3cret" not in str(one)
        assert "\nfairway_alarm_webhooks_off 1.0" in (await operator.get("/metrics")).text
    finally:  # a second try on the same platform would find it
        assert (await operator.delete(place)).status_code == 204


async def test_what_rules_compare_with_is_told(house: House, operator: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(60):
        while 'fairway_pool_slo_seconds{pool="short"} 0.5' not in (
            text := (await operator.get("/metrics")).text
        ):
            house.inside(look_now)
            await asyncio.sleep(0.1)
    assert "\nfairway_shards 1.0" in text
    assert "\nfairway_tenants_over_baseline 0.0" in text
    values = dict(line.split() for line in text.splitlines() if line.startswith("fairway_disk"))
    assert 0 < float(values["fairway_disk_free_bytes"]) < float(values["fairway_disk_bytes"])
