"""Limits by key over HTTP: what is taken, and what is refused with its field named."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from tests.api.house import problem
from tests.api.worker import HandWorker

ONE = {"key": "a", "at_most": 1}


@pytest.mark.parametrize(
    ("limits", "pointer"),
    [
        ([{"key": "", "at_most": 1}], "/limits/0/key"),
        ([{"key": "x" * 256, "at_most": 1}], "/limits/0/key"),
        ([{"key": "a", "at_most": 0}], "/limits/0/at_most"),
        ([{"key": "a"}], "/limits/0"),
        ([{**ONE, "key": str(n)} for n in range(5)], "/limits"),
        ([ONE, ONE], "/limits"),
        ([{**ONE, "count": 1, "per_seconds": 1}], "/limits/0"),
        ([{"key": "a", "count": 1}], "/limits/0"),
        ([{"key": "a", "count": 1, "per_seconds": 0.01}], "/limits/0/per_seconds"),
    ],
)
async def test_what_is_no_limit_is_refused(
    tenant: httpx2.AsyncClient, limits: list[dict[str, Any]], pointer: str
) -> None:
    reply = await tenant.post("/v1/jobs", json={"type": "sync", "limits": limits})
    found = problem(reply, 422, "INVALID_REQUEST")
    assert found["errors"][0]["pointer"].startswith(pointer)


async def test_a_batch_with_keys_and_limits(tenant: httpx2.AsyncClient, worker: HandWorker) -> None:
    jobs = [{"type": worker.type, "limits": [ONE]}, {"type": worker.type}] * 2
    key = {"Idempotency-Key": f"limits-{worker.type}"}
    replies = [
        (await tenant.post("/v1/jobs/batch", json={"jobs": jobs}, headers=key)).json()
        for _ in range(2)
    ]
    assert [item["id"] for item in replies[0]["items"]] == [
        item["id"] for item in replies[1]["items"]
    ]
    await worker.hello(slots=4)
    got = {(await worker.lease())["job"] for _ in range(3)}
    assert got == {replies[0]["items"][place]["id"] for place in (0, 1, 3)}
