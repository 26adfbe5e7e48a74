"""Alarms over HTTP: those that were, where they are sent, and marks beside graphs."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from tests.api.house import House, problem

from fairway.core.ids import ShardId
from fairway.core.insight.marks import FIRST_SEEN_MAX, FirstSeen
from fairway.services.platform import Platform
from fairway.store.insight import alarm_history, marks
from fairway.store.insight.alarm_history import NewAlarm

HOOK = {"url": "https://1.1.1.1/alarms", "enabled": False}


async def test_alarms_that_were_raised_are_listed(
    house: House, operator: httpx2.AsyncClient
) -> None:
    subjects = [f"pool {secrets.token_hex(6)}" for _ in range(3)]
    now = datetime.now(UTC)

    async def happen(platform: Platform) -> None:
        new = [
            NewAlarm("POOL_WITHOUT_WORKERS", "critical", one, "No worker.", 3.0, 0.0, now)
            for one in subjects
        ]
        async with platform.database.background() as connection:
            made = await alarm_history.raise_alarms(connection, new)
            await alarm_history.end_alarms(connection, [line.id for line in made], now)
            assert await alarm_history.raise_alarms(connection, new[:1] * 2) != []

    house.inside(happen)
    page = (await operator.get("/v1/alarms/history", params={"limit": 2})).json()
    assert [one["subject"] for one in page["items"]] == [subjects[0], subjects[2]]
    assert page["items"][0]["ended_at"] is None
    assert page["items"][1].keys() == {
        *("name", "severity", "subject", "text", "raised_at", "ended_at"),
    }
    more = {"limit": 2, "cursor": page["next_cursor"]}
    rest = (await operator.get("/v1/alarms/history", params=more)).json()["items"]
    assert [one["subject"] for one in rest] == [subjects[1], subjects[0]]
    problem(await operator.get("/v1/alarms/history?cursor=x"), 400, "INVALID_CURSOR", "cursor")

    seen = (await operator.get("/v1/marks")).json()["items"]
    mine = [one for one in seen if subjects[0] in one["text"]]
    assert [one["kind"] for one in mine] == ["incident", "incident"]
    assert None in [one["until"] for one in mine]


async def test_where_alarms_are_sent_is_the_operators_own(
    house: House, operator: httpx2.AsyncClient, tenant: httpx2.AsyncClient
) -> None:
    wrong = await operator.post("/v1/alarms/webhooks", json=HOOK | {"kinds": ["job.dead"]})
    told = problem(wrong, 422, "INVALID_REQUEST", "/kinds")
    assert "alarm.raised" in told["detail"]
    inside = await operator.post("/v1/alarms/webhooks", json={"url": "https://127.0.0.1/hook"})
    problem(inside, 422, "INVALID_REQUEST", "/url")
    made = await operator.post("/v1/alarms/webhooks", json=HOOK | {"kinds": ["alarm.*"]})
    assert made.status_code == 201, made.text
    place, hook = made.headers["location"], made.json()
    assert hook["secret"].startswith("whsec_")
    shown = (await operator.get(place)).json()
    assert "secret" not in shown
    assert shown["kinds"] == ["alarm.*"]
    listed = (await operator.get("/v1/alarms/webhooks")).json()["webhooks"]
    assert hook["id"] in [one["id"] for one in listed]
    assert (await tenant.get("/v1/webhooks")).json()["webhooks"] == []
    problem(await tenant.get(f"/v1/webhooks/{hook['id']}"), 404, "NOT_FOUND")
    theirs = (await tenant.post("/v1/webhooks", json=HOOK)).json()["id"]
    problem(await operator.get(f"/v1/alarms/webhooks/{theirs}"), 404, "NOT_FOUND")
    problem(await operator.post(f"{place}/test"), 409, "CONFLICT")
    changed = await operator.patch(place, json={"enabled": True, "kinds": []})
    assert (changed.json()["enabled"], changed.json()["kinds"]) == (True, [])
    problem(await operator.patch(place, json={"kinds": ["x"]}), 422, "INVALID_REQUEST", "/kinds")
    sent = await operator.post(f"{place}/test")
    assert sent.status_code == 202, sent.text
    found = (await operator.get(f"{place}/deliveries")).json()["deliveries"]
    assert [one["id"] for one in found] == [sent.json()["id"]]
    assert (await operator.delete(place)).status_code == 204
    problem(await operator.get(place), 404, "NOT_FOUND")

    async def settings_of_nobody(platform: Platform) -> bool:
        return platform.dispatcher.term_of(ShardId(0)) is not None

    assert house.inside(settings_of_nobody), "whose owner sends them"


@pytest.mark.parametrize("path", ["/v1/alarms/webhooks", "/v1/webhooks"])
async def test_who_may_only_look_sees_no_secrets_in_addresses(
    house: House, operator: httpx2.AsyncClient, path: str
) -> None:
    whose, key = house.new_tenant()
    scope = {"scope": "operator"} if "alarms" in path else {"tenant": whose}
    looks = house.new_key(scope | {"permissions": ["read"]})
    async with house.caller(key) as tenant, house.caller(looks) as reader:
        caller = operator if "alarms" in path else tenant
        for tail in ("/services/T0/s3cret", "?token=s3cret"):
            wish = HOOK | {"url": f"https://1.1.1.1{tail}"}
            made = await caller.post(path, json=wish)
            assert made.json()["url"] == wish["url"]
            place = made.headers["location"]
            assert (await caller.get(place)).json()["url"] == wish["url"]
            seen = (await reader.get(place)).json()
            assert seen["url"].startswith("https://1.1.1.1/…")
            listed = await reader.get(path)
            audited = await caller.get("/v1/audit", params={"limit": 10})
            assert "s3cret" not in f"{seen}{listed.text}{audited.text}"
            assert (await caller.delete(place)).status_code == 204


async def test_marks_are_kept_and_found(house: House, operator: httpx2.AsyncClient) -> None:
    text = f"moved {secrets.token_hex(6)}"
    made = await operator.post("/v1/marks", json={"text": text})
    assert (made.status_code, made.json()["kind"], made.json()["until"]) == (201, "note", None)
    at = datetime.fromisoformat(made.json()["at"])
    span = {"from": (at - timedelta(hours=1)).isoformat(), "to": (at + timedelta(1)).isoformat()}
    found = (await operator.get("/v1/marks", params=span)).json()["items"]
    assert text in [one["text"] for one in found]
    assert [one["at"] for one in found] == sorted(one["at"] for one in found)
    before = {"from": (at - timedelta(hours=2)).isoformat(), "to": span["from"]}
    found = (await operator.get("/v1/marks", params=before)).json()["items"]
    assert text not in [one["text"] for one in found]
    for bad, field in (({"text": ""}, "/text"), ({"text": "a\nb"}, "/text")):
        problem(await operator.post("/v1/marks", json=bad), 422, "INVALID_REQUEST", field)
    wrong = await operator.get("/v1/marks", params={"from": span["to"], "to": span["from"]})
    problem(wrong, 422, "INVALID_REQUEST", "from")


async def test_what_is_seen_for_the_first_time_leaves_one_mark(house: House) -> None:
    name = secrets.token_hex(6)

    async def deploys(platform: Platform, seen: list[FirstSeen]) -> list[str]:
        async with platform.database.background() as connection:
            for _ in range(2):
                await marks.see_sources(connection, seen, FIRST_SEEN_MAX)
            now = platform.store_clock.now()
            day = timedelta(days=1)
            found = await marks.list_marks(connection, now - day, now + day, 1000)
        return [one.text for one in found if name in one.text]

    async def few(platform: Platform) -> list[str]:
        return await deploys(platform, [FirstSeen(f"build {name} first seen", f"workers {name}")])

    assert house.inside(few) == [f"build {name} first seen"]

    async def many(platform: Platform) -> list[str]:
        seen = [FirstSeen(f"build {name} {n}", f"workers {name} {n}") for n in range(50)]
        for one in seen:
            await deploys(platform, [one])
        return await deploys(platform, seen)

    assert len(house.inside(many)) <= FIRST_SEEN_MAX, "a build for each worker is no deploy"

    async def forgotten(platform: Platform) -> list[str]:
        async with platform.database.background() as connection:
            await marks.forget_marks(connection, datetime(2000, 1, 1, tzinfo=UTC), 1, 1000)
        return await deploys(platform, [])

    assert len(house.inside(forgotten)) <= 1, "of each kind the newest"
