"""The audit: every administrative act has its line, with who, from where, before and after."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import httpx2
import pytest
from tests.api.house import House, problem
from tests.api.worker import HandWorker

from fairway.api.routes import ENDPOINTS
from fairway.services.platform import Platform
from fairway.services.workers.worker_list import life_of
from fairway.store.restraints import impose_quarantine

#: What would change the house that all tests here share; its line is seen elsewhere.
AUDITED_ELSEWHERE = {
    "POST /v1/shards/move",  # test_tenant_moves.py, and so the next
    "POST /v1/shards/move/cancel",
    "POST /v1/shards/split",  # test_shards.py
    "PUT /v1/tenants/{name}/home",  # test_two_regions.py, and so the next two
    "POST /v1/regions/{name}/failover",
    "POST /v1/regions/{name}/failback",
}
#: What operators and tenants may do that leaves no line, and why.
NOT_AUDITED = {
    "POST /v1/jobs": "hands in work",
    "POST /v1/jobs/batch": "hands in work",
    "POST /v1/uploads": "hands in work",
    "POST /v1/flows": "hands in work",
    "POST /v1/flows/{id}/jobs": "hands in work",
    "POST /v1/schedules/{name}/trigger": "hands in one job",
    "DELETE /v1/jobs/{id}": "one job, which says what became of it",
    "PATCH /v1/jobs/{id}": "one job, which says what became of it",
    "POST /v1/dead-letters/{id}/replay": "one job, whose history has it",
    "DELETE /v1/dead-letters/{id}": "one job, which says what became of it",
    "DELETE /v1/flows/{id}": "one flow, which says what became of it",
    "POST /v1/flows/{id}/replay": "one flow, whose jobs' histories have it",
    "POST /v1/webhooks/{id}/test": "one delivery, which the list of deliveries has",
    "POST /v1/alarms/webhooks/{id}/test": "one delivery, which the list of deliveries has",
    "POST /v1/webhooks/{id}/deliveries/{delivery}/replay": "one delivery, whose list has it",
    "POST /v1/webhooks/{id}/replay": "deliveries, whose list has them",
    "POST /v1/jobs/wait": "changes nothing",
    "POST /v1/schedule-preview": "changes nothing",
    "POST /session/links": "the sign-in that it opens has its line",
    "DELETE /session": "ends what its own sign-in began",
}


class Step(NamedTuple):
    """An act, by whom, and the line that it leaves."""

    call: str
    who: str  # operator | tenant
    action: str
    subject: str
    body: Any = None
    query: dict[str, str] | None = None

    @property
    def path(self) -> str:
        return re.sub(r"\{\w+\}", self.subject, self.call.partition(" ")[2])


SCHEDULE = {"cron": "0 9 * * *", "type": "report.build", "payload": {"marker": "not in the audit"}}
TIER = {"weight": 5, "rate_per_second": 10, "burst": 100, "depth_limit": 1000}
PAST = {"since": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z"}
OWN = {"pool": "long"}
CAP = {"cap_micros": 1_000_000}
SCALE = {"mode": "dry_run", "maximum_workers": 7}
MORE = {"workers": 5}
PRICE = {"slot_second_micros": 1, "valid_from": "2999-01-01T00:00:00Z"}
AT_ONCE = {"suspend": "true"}


def steps(name: str, key: str, worker: str) -> list[Step]:
    """Every act, in an order in which each finds what it needs."""
    paused = {"tenant": name, **OWN}
    said = f"tenant={name} pool=long"
    return [
        Step("PATCH /v1/tenants/{name}", "operator", "change_tenant", name, {"weight": 7}),
        Step("PUT /v1/tiers/{name}", "operator", "put_tier", name, TIER),
        Step("PUT /v1/pools/{name}", "operator", "put_pool", name, {"slots": 2}),
        Step("PUT /v1/job-types/{name}", "operator", "put_job_type", name, {"attempts": 2}),
        Step("DELETE /v1/job-types/{name}", "operator", "delete_job_type", name),
        Step("POST /v1/pauses", "operator", "pause", said, paused),
        Step("DELETE /v1/pauses", "operator", "resume", said, query=paused),
        Step("POST /v1/pauses", "tenant", "pause", said, OWN),
        Step("DELETE /v1/pauses", "tenant", "resume", said, query=OWN),
        Step("PUT /v1/schedules/{name}", "tenant", "put_schedule", name, SCHEDULE),
        Step("POST /v1/schedules/{name}/pause", "tenant", "pause_schedule", name),
        Step("POST /v1/schedules/{name}/resume", "tenant", "resume_schedule", name),
        Step("POST /v1/schedules/{name}/backfill", "tenant", "backfill_schedule", name, PAST),
        Step("DELETE /v1/schedules/{name}", "tenant", "delete_schedule", name),
        Step("DELETE /v1/quarantines/{type}", "tenant", "lift_quarantine", "report.build"),
        Step("PUT /v1/autoscale/{pool}", "operator", "set_autoscale", "medium", SCALE),
        Step("PUT /v1/autoscale/{pool}/override", "operator", "override_autoscale", "medium", MORE),
        Step(
            "DELETE /v1/autoscale/{pool}/override", "operator", "end_autoscale_override", "medium"
        ),
        Step("POST /v1/workers/{name}/drain", "operator", "drain_worker", worker),
        Step("DELETE /v1/keys/{id}", "operator", "revoke_key", key),
        Step("PUT /v1/events/settings", "tenant", "set_job_events", name, {"job_events": True}),
        Step("PUT /v1/tenants/{name}/spend-cap", "operator", "set_spend_cap", name, CAP),
        Step("DELETE /v1/tenants/{name}/spend-cap", "operator", "drop_spend_cap", name),
        Step("POST /v1/prices", "operator", "add_price", name, {"pool": name, **PRICE}),
        Step("DELETE /v1/prices/{id}", "operator", "drop_price", f"{name}-2999010100"),
        Step("POST /v1/marks", "operator", "add_mark", "note", {"text": "the disk is larger"}),
        Step("POST /v1/tenants/{name}/suspend", "operator", "suspend_tenant", name, {}),
        Step("POST /v1/tenants/{name}/resume", "operator", "resume_tenant", name),
        Step("DELETE /v1/tenants/{name}", "operator", "delete_tenant", name, query=AT_ONCE),
        Step("POST /v1/tenants/{name}/restore", "operator", "restore_tenant", name),
    ]


#: Whose subject is known only once they are done.
MAKING = (
    "POST /v1/tenants",
    "POST /v1/keys",
    "POST /v1/keys/{id}/rotate",
    "POST /v1/bulk-actions",
    "POST /v1/bulk-actions/{id}/abort",
    "POST /v1/webhooks",
    "PATCH /v1/webhooks/{id}",
    "POST /v1/webhooks/{id}/rotate",
    "DELETE /v1/webhooks/{id}",
    "POST /v1/alarms/webhooks",
    "PATCH /v1/alarms/webhooks/{id}",
    "POST /v1/alarms/webhooks/{id}/rotate",
    "DELETE /v1/alarms/webhooks/{id}",
)


class Scene(NamedTuple):
    house: House
    operator: httpx2.AsyncClient
    tenant: httpx2.AsyncClient
    name: str
    key: str  # of the tenant

    async def lines(self, reply: httpx2.Response) -> list[dict[str, Any]]:
        """What the audit has of one request."""
        found = (await self.operator.get("/v1/audit", params={"limit": 50})).json()["entries"]
        return [one for one in found if one["request_id"] == reply.headers["x-request-id"]]


@pytest.fixture
async def scene(house: House, operator: httpx2.AsyncClient) -> AsyncIterator[Scene]:
    name, key = house.new_tenant()
    async with house.caller(key) as tenant:
        yield Scene(house, operator, tenant, name, key)


def test_every_act_is_audited_or_says_why_not() -> None:
    acts = {
        one.call
        for one in ENDPOINTS
        if one.method not in ("GET", "HEAD") and {"operator", "tenant"} & set(one.keys)
    }
    audited = {step.call for step in steps("", "", "")} | {*MAKING}
    assert acts == audited | AUDITED_ELSEWHERE | NOT_AUDITED.keys()
    assert not audited & NOT_AUDITED.keys()


async def test_every_act_leaves_its_line(scene: Scene, worker: HandWorker) -> None:
    await worker.hello(slots=1)
    made = await scene.operator.post("/v1/keys", json={"scope": "tenant", "tenant": scene.name})
    ((line,), key) = (await scene.lines(made), made.json()["id"])
    assert (line["action"], line["subject"], line["tenant"]) == ("add_key", key, scene.name)
    rotated = await scene.operator.post(f"/v1/keys/{key}/rotate", json={"overlap_seconds": 60})
    (line,) = await scene.lines(rotated)
    assert (line["action"], line["before"]["id"]) == ("rotate_key", key)
    added = await scene.operator.post("/v1/tenants", json={"name": f"n-{secrets.token_hex(6)}"})
    assert [one["action"] for one in await scene.lines(added)] == ["add_key", "add_tenant"]

    jobs = [{"type": "nobody.runs.this"}] * 3
    await scene.tenant.post("/v1/jobs/batch", json={"jobs": jobs})
    which = {"type": "nobody.runs.this", "pool": "short", "state": "queued,running"}
    slowly = {"act": "cancel", "filter": which, "per_second": 1}
    begun = await scene.tenant.post("/v1/bulk-actions", json=slowly)
    (line,) = await scene.lines(begun)
    assert (line["action"], line["subject"]) == ("bulk_cancel", begun.json()["id"])
    assert line["after"] | {"matched": 3, **which} == line["after"], "as people say it"
    assert line["after"].keys().isdisjoint({"states", "before", "fingerprint"})
    aborted = await scene.tenant.post(f"{begun.headers['location']}/abort")
    (line,) = await scene.lines(aborted)
    assert (line["action"], line["after"]) == ("abort_bulk_action", {"state": "aborted"})

    actors = {
        "operator": scene.house.operator_key.split("_")[2],
        "tenant": scene.key.split("_")[2],
    }
    for step in steps(scene.name, key, life_of(worker.session)):
        if "quarantines" in step.call:
            _quarantine(scene)
        caller = scene.operator if step.who == "operator" else scene.tenant
        method = step.call.partition(" ")[0]
        reply = await caller.request(method, step.path, json=step.body, params=step.query)
        assert reply.is_success, (step.call, reply.text)
        (line,) = await scene.lines(reply)
        assert (line["action"], line["subject"]) == (step.action, step.subject)
        assert (line["actor"], line["actor_kind"]) == (actors[step.who], step.who)
        assert line["address"] == "127.0.0.1"
        assert line["before"] != line["after"], step.call
        assert "not in the audit" not in str(line)


def _quarantine(scene: Scene) -> None:
    async def impose(platform: Platform) -> None:
        tenant = platform.directory.tenant_ids[scene.name]
        type_ = (await platform.directory.know_types(["report.build"], tenant))["report.build"]
        async with platform.database.background() as connection:
            await impose_quarantine(connection, tenant, type_)

    scene.house.inside(impose)


@pytest.mark.parametrize("path", ["/v1/webhooks", "/v1/alarms/webhooks"])
async def test_what_is_done_to_webhooks_leaves_its_lines(scene: Scene, path: str) -> None:
    caller = scene.operator if "alarms" in path else scene.tenant
    made = await caller.post(path, json={"url": "https://1.1.1.1/hook", "enabled": False})
    hook, place = made.json()["id"], made.headers["location"]
    replies = {
        "add_webhook": made,
        "change_webhook": await caller.patch(place, json={"description": "new"}),
        "rotate_webhook": await caller.post(f"{place}/rotate"),
        "delete_webhook": await caller.delete(place),
    }
    secret = made.json()["secret"]
    for action, reply in replies.items():
        lines = [one for one in await scene.lines(reply) if one["action"] != "set_job_events"]
        (line,) = lines
        assert (line["action"], line["subject"]) == (action, hook)
        assert line["tenant"] == (None if "alarms" in path else scene.name)
        assert line["before"] != line["after"]
        assert secret not in str(line)


async def test_what_is_refused_leaves_no_line(scene: Scene) -> None:
    refused = await scene.operator.patch(f"/v1/tenants/{scene.name}", json={"tier": "no-such"})
    told = problem(refused, 422, "INVALID_REQUEST", "/tier")
    found = (await scene.operator.get("/v1/audit", params={"limit": 5})).json()["entries"]
    assert told["request_id"] not in [one["request_id"] for one in found]


async def test_filters_and_pages(scene: Scene) -> None:
    for weight in (2, 3, 4):
        await scene.operator.patch(f"/v1/tenants/{scene.name}", json={"weight": weight})
    wanted: dict[str, Any] = {"subject": scene.name, "action": "change_tenant", "limit": 2}
    wanted |= {"actor": scene.house.operator_key.split("_")[2], "since": "2026-01-01T00:00:00Z"}
    first = (await scene.operator.get("/v1/audit", params=wanted)).json()
    assert [one["after"]["weight"] for one in first["entries"]] == [4, 3]
    wanted["cursor"] = first["next_cursor"]
    second = (await scene.operator.get("/v1/audit", params=wanted)).json()
    assert [one["after"]["weight"] for one in second["entries"]] == [2]
    assert second["next_cursor"] is None
    none = await scene.operator.get("/v1/audit", params={"actor": "nobody-of-this-name"})
    assert none.json()["entries"] == []
    for bad in ({"actor": ""}, {"subject": "a\x00"}, {"since": "lately"}, {"colour": "red"}):
        reply = await scene.operator.get("/v1/audit", params=bad)
        problem(reply, 422, "INVALID_REQUEST", next(iter(bad)))
    problem(await scene.operator.get("/v1/audit?cursor=x"), 400, "INVALID_CURSOR", "cursor")


async def test_a_tenant_sees_what_was_done_to_its_own_things(
    scene: Scene, stranger: httpx2.AsyncClient
) -> None:
    await scene.operator.patch(f"/v1/tenants/{scene.name}", json={"weight": 9})
    await scene.tenant.post("/v1/pauses", json={"pool": "long"})
    found = (await scene.tenant.get("/v1/audit")).json()["entries"]
    assert [one["action"] for one in found] == ["pause", "change_tenant", "add_key", "add_tenant"]
    own, staffs = found[0], found[1]
    assert (own["actor"], own["address"]) == (scene.key.split("_")[2], "127.0.0.1")
    assert (staffs["actor"], staffs["actor_name"], staffs["address"]) == ("operator", "", "")
    assert {one["tenant"] for one in found} == {scene.name}
    operators_key = scene.house.operator_key.split("_")[2]
    asked = await scene.tenant.get("/v1/audit", params={"actor": operators_key})
    assert asked.json()["entries"] == []  # nor can it be found out by asking
    theirs = (await stranger.get("/v1/audit")).json()["entries"]
    assert scene.name not in str(theirs)


async def test_a_forwarded_address_of_a_stranger_means_nothing(scene: Scene) -> None:
    reply = await scene.operator.patch(
        f"/v1/tenants/{scene.name}",
        json={"weight": 3},
        headers={"x-forwarded-for": "203.0.113.9", "x-fairway-origin": "id 203.0.113.9"},
    )
    (line,) = await scene.lines(reply)
    assert line["address"] == "127.0.0.1"
