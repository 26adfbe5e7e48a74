"""A tenant that does the same things every time, and what it sees of them in the end.

Its jobs say in their payloads what their runs shall come to, so a worker that serves others beside
it does the same with them however many come in between. What differs from run to run by nature is
taken out of the view: ids, names that are made anew, times, and how long things took.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable
from typing import Any

import httpx2
from tests.api.house import House
from tests.api.jobs.test_uploads import put
from tests.api.worker import HandWorker

SLOTS = 16
PATIENCE_SECONDS = 20.0
KEY = "order-1"  # of the quiet tenant's batch; anybody may use the same one
SCHEDULE = "nightly"
STATE = {"page": 7}
TERMS = {"weight": 20, "cap": 9, "rate_per_second": 1000, "burst": 5000, "depth_limit": 1000}
#: What a run shall come to, with what the job then is.
ENDS = {
    "succeed": "succeeded", "fail_once": "succeeded", "die": "dead", "snooze_once": "succeeded",
    "save": "succeeded", "wait": "cancelled", "large": "succeeded", "progress": "succeeded",
}  # fmt: skip
TIMES = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)")
#: Facts of moments, not of what was done.
PASSING = {
    "checkpoint",  # of a job that ended: the janitor drops it a minute later; its result has it
    "created_at", "ended_at", "fair_slots", "fingerprint", "late_seconds", "next_runs",
    "ran_seconds", "run_seconds", "share", "tenants_ahead", "tick",
}  # fmt: skip


class SharedWorker(HandWorker):
    """Runs jobs of these types as their payloads say, whoever's they are."""

    def __init__(self, client: httpx2.AsyncClient, types: list[str], patron: str) -> None:
        super().__init__(client)
        self._patron = patron  # whose jobs end when they are cancelled
        self._types = types
        self._waiting: dict[str, dict[str, Any]] = {}  # until they are cancelled
        self._begun: set[str] = set()

    async def greet(self) -> None:
        hello = {
            "types": [{"name": name, "attempts_max": 3} for name in self._types],
            "slots": {"short": SLOTS, "long": SLOTS},
        }
        held = [self.holding(one) for one in self._waiting.values()]
        await self.say(hello=hello, running=held)

    async def turn(self) -> None:
        """Hear what there is, and do it."""
        heard = await self.say(wait_ms=100)
        if heard.get("resync"):
            await self.greet()
        leases, self.inbox = self.inbox, []
        asked = [job for job in heard.get("cancel", ()) if job in self._waiting]
        reports = [self.report(self._waiting.pop(job), "cancelled") for job in asked]
        for lease in leases:
            reports += await self._done(lease)
        if reports:
            await self.say(reports=reports)

    async def _done(self, lease: dict[str, Any]) -> list[dict[str, Any]]:
        payload = lease["payload"]
        wish, is_first = payload.get("do"), lease["job"] not in self._begun
        self._begun.add(lease["job"])
        if wish == "wait" and lease["tenant"] == self._patron:  # others would wait for ever
            self._waiting[lease["job"]] = lease
            return []
        if wish == "fail_once" and is_first:
            return [self._failed(lease, "app_error", delay_ms=1)]
        if wish == "die":
            return [self._failed(lease, "permanent")]
        if wish == "crash" and is_first:
            return [self._failed(lease, "worker_crash")]
        if wish == "snooze_once" and is_first:
            return [self.report(lease, "snoozed", delay_ms=1)]
        if wish == "save":
            return [await self._saved(lease, is_first=is_first)]
        if wish == "progress":
            await self.say(running=[self.holding(lease, progress={"half": True})])
        result = "x" * 100_000 if wish == "large" else payload.get("n")
        return [self.report(lease, result=result)]

    def _failed(self, lease: dict[str, Any], failure: str, **more: Any) -> dict[str, Any]:
        error = {"type": "ValueError", "message": "as it was told", "stack": ""}
        return self.report(lease, "failed", failure=failure, error=error, **more)

    async def _saved(self, lease: dict[str, Any], *, is_first: bool) -> dict[str, Any]:
        """Saves in its first run, and begins from there in its second."""
        home = "/v1/workers/hand-1/checkpoints"
        if is_first:
            await self.client.post(home, json=self.holding(lease, number=1, state=STATE))
            return self.report(lease, "returned")
        query = {"tenant": lease["tenant"], "epoch": lease["epoch"]}
        found = await self.client.get(f"{home}/{lease['job']}", params=query)
        return self.report(lease, result=found.json())


class QuietTenant:
    def __init__(self, house: House) -> None:
        self.house = house
        self.tag = secrets.token_hex(5)
        self.name, key = house.new_tenant(**TERMS)
        self.types = [f"quiet.{self.tag}.{letter}" for letter in "ab"]
        self.rare = f"quiet.{self.tag}.rare"  # that no shared worker runs
        self.client = house.caller(key)
        self.operator = house.caller(house.operator_key)
        shared = house.caller(house.new_key({"scope": "worker"}))
        self.worker = SharedWorker(shared, self.types, self.name)
        self.jobs: list[str] = []  # in the order in which they were made
        self.waiting = ""  # a job of the rare type, in a pool without shared workers
        self.uploads: list[str] = []
        self._answers: list[Any] = []

    #: What it does, one after the other.
    STEPS = ("begin", "submit", "work", "go_on", "upload", "cancel", "replay", "trigger")

    async def _call(self, method: str, path: str, **more: Any) -> Any:
        reply = await self.client.request(method, path, **more)
        self._answers.append([method, path, reply.status_code])
        assert reply.status_code < 300, (path, reply.status_code, reply.text)
        return reply.json()

    async def _job(self, name: str, **more: Any) -> str:
        job: str = (await self._call("POST", "/v1/jobs", json={"type": name, **more}))["id"]
        self.jobs.append(job)
        return job

    async def begin(self) -> None:
        await self.worker.greet()
        await self._call("POST", "/v1/pauses", json={"type": self.types[1]})
        body = {"type": self.types[0], "cron": "0 3 1 1 *", "payload": {"do": "succeed"}}
        await self._call("PUT", f"/v1/schedules/{SCHEDULE}", json=body)
        rare = {"type": self.rare, "pool": "medium"}
        self.waiting = (await self._call("POST", "/v1/jobs", json=rare))["id"]

    async def submit(self) -> None:
        jobs = [
            {"type": self.types[0], "payload": {"do": wish, "n": n}, "priority": n % 3,
             "pool": "long" if wish == "save" else "short"}
            for n, wish in enumerate(ENDS)
        ]  # fmt: skip
        headers = {"idempotency-key": KEY}
        for _ in range(2):  # the second time they are there
            said = await self._call("POST", "/v1/jobs/batch", json={"jobs": jobs}, headers=headers)
            self.jobs = [item["id"] for item in said["items"]]
        await self._job(self.types[1], payload={"do": "fail_once"})

    async def work(self) -> None:
        wanted = [state if wish != "wait" else "running" for wish, state in ENDS.items()]
        await self._until(lambda states: states[: len(ENDS)] == wanted)

    async def go_on(self) -> None:
        """With what it had paused."""
        await self._call("DELETE", "/v1/pauses", params={"type": self.types[1]})
        await self._until(lambda states: states[-1] == "succeeded")

    async def upload(self) -> None:
        made = await self._call("POST", "/v1/uploads")
        self.uploads.append(made["id"])
        assert (await put(self.house, made["url"], b'{"do":"succeed","n":1}')).status_code == 204
        await self._job(self.types[0], payload_upload=made["id"])
        await self._until(lambda states: states[-1] == "succeeded")

    async def cancel(self) -> None:
        waiting = self.jobs[list(ENDS).index("wait")]
        await self._call("DELETE", f"/v1/jobs/{waiting}")
        await self._until(lambda states: "running" not in states)

    async def replay(self) -> None:
        dead = self.jobs[list(ENDS).index("die")]
        await self._call("POST", f"/v1/dead-letters/{dead}/replay")
        await self._until(lambda states: states.count("dead") == 1)

    async def trigger(self) -> None:
        self.jobs.append((await self._call("POST", f"/v1/schedules/{SCHEDULE}/trigger"))["id"])
        await self._until(lambda states: states[-1] == "succeeded")

    async def _until(self, holds: Callable[[list[str]], bool]) -> None:
        states: list[str] = []
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (states and holds(states)):
            assert time.monotonic() < deadline, states
            await self.worker.turn()
            found = (await self.client.get("/v1/jobs", params={"limit": 100})).json()["jobs"]
            by_id = {one["id"]: one["state"] for one in found}
            states = [by_id[job] for job in self.jobs]

    async def leave(self) -> None:
        await self.worker.leave()
        for client in (self.worker.client, self.client, self.operator):
            await client.aclose()

    # -- what it sees ------------------------------------------------------------------------------

    async def view(self) -> dict[str, Any]:
        """All that it can see of its own, and all that operators can see of it."""
        paths = ["/v1/jobs?limit=100", "/v1/dead-letters", "/v1/dead-letters/groups",
                 "/v1/bulk-actions", "/v1/restraints", "/v1/schedules", "/v1/pauses",
                 "/v1/events", "/v1/limits", "/v1/usage", f"/v1/schedules/{SCHEDULE}/runs",
                 f"/v1/jobs?type={self.types[0]}&state=dead"]  # fmt: skip
        for job in self.jobs:
            paths += [f"/v1/jobs/{job}", f"/v1/jobs/{job}/explain", f"/v1/jobs/{job}/payload"]
        paths += [f"/v1/jobs/{self.waiting}", f"/v1/jobs/{self.waiting}/explain"]
        own = {path: await self._seen(self.client, path) for path in paths}
        own["untaught"] = _untaught(own[paths[-1]])
        paths = ["/v1/tiers", "/v1/pools", f"/v1/tenants/{self.name}"]
        paths += [f"/v1/job-types/{name}" for name in self.types]
        operators = {path: await self._seen(self.operator, path) for path in paths}
        pauses = (await self._seen(self.operator, "/v1/pauses"))["pauses"]
        operators["/v1/pauses"] = [one for one in pauses if one.get("tenant") in (None, self.name)]
        operators[f"/v1/tenants/{self.name}"].pop("id")
        inside = self.house.inside(self._inside)
        text = self._plain(json.dumps([own, operators, inside, self._answers]))
        seen: dict[str, Any] = dict(
            zip(("own", "operators", "inside", "answers"), _lasting(json.loads(text)), strict=True)
        )
        return seen

    async def _seen(self, client: httpx2.AsyncClient, path: str) -> Any:
        reply = await client.get(path)
        assert reply.status_code == 200, (path, reply.status_code, reply.text)
        return reply.json()  # by Python's own reader

    async def _inside(self, platform: Any) -> Any:
        """What the platform goes by when it judges and shares out."""
        number = platform.directory.id_of(self.name)
        types = [platform.directory.type_ids[name] for name in self.types]
        failure_policy, registry = platform.dispatcher.failure_policy, platform.registry
        rosters = [
            platform.dispatcher.shares[pool]._competitors for pool in registry.pools.by_number
        ]
        return {
            "policies": [failure_policy.policies.of(number, one) for one in types],
            "terms": [repr(roster.entitlement_of(number)) for roster in rosters],
            "circuits": [kind for kind, _ in failure_policy.circuits.of_tenant(number)],
            "recycling": [
                pool for tenant, pool in failure_policy.crash_throttles if tenant == number
            ],
            "pools": [registry.pool_for(name, None) for name in (*self.types, self.rare)],
            "schemas": [str(registry.schemas.get(name)) for name in self.types],
            "tenant": repr(platform.directory.tenants[number]._replace(id=0)),
        }

    def _plain(self, text: str) -> str:
        for place, job in enumerate(self.jobs):
            text = text.replace(job, f"job-{place}")
        text = text.replace(self.waiting, "waiting")
        for place, upload in enumerate(self.uploads):
            text = text.replace(upload, f"upload-{place}")
        text = text.replace(self.name, "quiet").replace(self.tag, "tag")
        return TIMES.sub("T", text)


def _untaught(explained: dict[str, Any]) -> dict[str, Any]:
    """What is expected of a job where nothing shared has run yet: the same whoever runs his own."""
    share = explained["share"] or {}
    return {
        "estimate": explained["run_seconds"],
        "slots": explained["fair_slots"],
        "received": share.get("received_slot_seconds", 0.0),
        "entitled": share.get("entitled_slot_seconds", 0.0),
    }


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lasting(inner) for key, inner in value.items() if key not in PASSING}
    return [_lasting(inner) for inner in value] if isinstance(value, list) else value
