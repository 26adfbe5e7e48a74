"""Unique jobs over HTTP: the second of a kind, and what is refused with its field named."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from tests.api.house import problem

JOBS = "/v1/jobs"


async def test_the_second_of_a_kind(tenant: httpx2.AsyncClient) -> None:
    body: dict[str, Any] = {"type": "nobody.runs.this", "unique": {"key": "report-7"}}
    first = await tenant.post(JOBS, json=body)
    assert first.status_code == 202
    again = await tenant.post(JOBS, json=body)
    assert first.json()["id"] in problem(again, 409, "NOT_UNIQUE", "/unique")["detail"]
    body["unique"]["on_conflict"] = "return"
    there = await tenant.post(JOBS, json=body)
    assert (there.status_code, there.json()["id"]) == (202, first.json()["id"])
    assert there.headers["idempotent-replayed"] == "true"
    batch = await tenant.post(f"{JOBS}/batch", json={"jobs": [body, {"type": "nobody.runs.this"}]})
    assert [item["status"] for item in batch.json()["items"]] == [202, 202]
    assert batch.json()["items"][0]["id"] == first.json()["id"]


@pytest.mark.parametrize(
    ("unique", "pointer"),
    [
        ({"key": ""}, "/unique/key"),
        ({"key": "a", "while_states": []}, "/unique/while_states"),
        ({"key": "a", "while_states": ["nowhere"]}, "/unique/while_states"),
        ({"key": "a", "within_seconds": 0}, "/unique/within_seconds"),
        ({"key": "a", "on_conflict": "replace"}, "/unique/on_conflict"),
    ],
)
async def test_what_cannot_be_unique_is_refused(
    tenant: httpx2.AsyncClient, unique: dict[str, Any], pointer: str
) -> None:
    reply = await tenant.post(JOBS, json={"type": "report", "unique": unique})
    assert problem(reply, 422, "INVALID_REQUEST")["errors"][0]["pointer"].startswith(pointer)
