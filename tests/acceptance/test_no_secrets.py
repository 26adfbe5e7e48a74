"""A secret that a tenant hands in is in no log, no metric, no page, and in nobody else's reply."""

from __future__ import annotations

import secrets
from typing import Any

import httpx2
from tests.acceptance.house import House
from tests.acceptance.processes import until


async def test_a_secret_is_shown_to_its_tenant_alone(house: House) -> None:
    (worker,) = await house.open(app="tests.acceptance.leaky_jobs:app")
    (server,) = house.servers
    marker = f"m4rk3r{secrets.token_hex(8)}"
    others: list[str] = []
    async with httpx2.AsyncClient(base_url=server.url, timeout=30, trust_env=False) as line:

        async def ask(
            method: str, path: str, key: str, headers: dict[str, str] | None = None, **body: Any
        ) -> httpx2.Response:
            shown = {"authorization": f"Bearer {key}"} | (headers or {})
            return await line.request(method, path, headers=shown, **body)

        job = {"type": "leaky", "payload": {"password": marker, "note": marker}}
        spoken = {"idempotency-key": marker, "x-trace": marker, "cookie": f"session={marker}"}
        keyed = job | {"metadata": {"secret": marker}}
        accepted = await ask("POST", f"/v1/jobs?trace={marker}", house.api_key, spoken, json=keyed)
        assert accepted.status_code in (202, 422), accepted.text
        accepted = await ask("POST", "/v1/jobs", house.api_key, json=job | {"tags": [marker]})
        place = accepted.headers["location"]
        view = await house.finished(accepted.json()["id"])
        assert marker in str(view), "its tenant sees its own"

        broken = b'{"type": "leaky", "payload": {"password": "' + marker.encode() + b'"'
        await ask("POST", "/v1/jobs", house.api_key, content=broken)
        await ask("POST", "/v1/jobs", house.api_key, json={"type": f"{marker} {marker}"})
        await ask("POST", "/v1/jobs", f"fw_tenant_{marker}_{marker}_0", json=job)
        schedule = {"cron": "0 9 * * *"} | job
        await ask("PUT", "/v1/schedules/leaky", house.api_key, json=schedule)

        mine = (place, f"{place}/explain", "/v1/audit", "/v1/workers", "/v1/job-types")
        pages = ("/docs", "/metrics", "/openapi.json", "/docs/problems/INVALID_JSON")
        for path in (*mine, *(f"{page}?token={marker}" for page in pages)):
            reply = await ask("GET", path, house.operator_key)
            others.append(reply.text)
        await until(lambda: "run failed" in worker.said, 30, "the failed run in the worker's log")
    assert "[redacted]" in worker.said, "the error is told without its secret"
    for said in (server.said, worker.said, *others):
        at = said.find(marker)
        assert at < 0, said[max(at - 300, 0) : at + 100]
