"""Unique jobs over HTTP: the second of a kind, and what is refused with its field named."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from tests.api.house import House, open_house, problem

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


async def test_through_any_server_the_owner_replaces(house: House) -> None:
    body: dict[str, Any] = {
        "type": "nobody.runs.this",
        "unique": {"key": "report-8", "on_conflict": "replace"},
    }
    _, key = house.new_tenant()
    with open_house(house.dsn) as second:
        async with house.caller(key) as near, second.caller(key) as far:
            first = await near.post(JOBS, json=body)
            headers = {"Idempotency-Key": "k"}
            other = await far.post(JOBS, json=body, headers=headers)
            assert other.status_code == 202, other.text
            assert "ratelimit" in other.headers
            again = await far.post(JOBS, json=body, headers=headers)
            assert again.json()["id"] == other.json()["id"]
            assert again.headers["idempotent-replayed"] == "true"
            batch = await far.post(f"{JOBS}/batch", json={"jobs": [body, body]})
            ids = [first.json()["id"], other.json()["id"]]
            ids += [item["id"] for item in batch.json()["items"]]
            found = [(await near.get(f"{JOBS}/{id_}")).json()["state"] for id_ in ids]
            assert found == ["cancelled", "cancelled", "cancelled", "queued"]


@pytest.mark.parametrize(
    ("unique", "pointer"),
    [
        ({"key": ""}, "/unique/key"),
        ({"key": "a", "while_states": []}, "/unique/while_states"),
        ({"key": "a", "while_states": ["nowhere"]}, "/unique/while_states"),
        ({"key": "a", "within_seconds": 0}, "/unique/within_seconds"),
        ({"key": "a", "on_conflict": "fight"}, "/unique/on_conflict"),
        ({"key": "a", "on_conflict": "replace", "while_states": ["dead"]}, "/unique/while_states"),
        ({"key": "a", "delay_most_seconds": 60}, "/unique/delay_most_seconds"),
    ],
)
async def test_what_cannot_be_unique_is_refused(
    tenant: httpx2.AsyncClient, unique: dict[str, Any], pointer: str
) -> None:
    reply = await tenant.post(JOBS, json={"type": "report", "unique": unique})
    assert problem(reply, 422, "INVALID_REQUEST")["errors"][0]["pointer"].startswith(pointer)
