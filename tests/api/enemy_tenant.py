"""A tenant that says everything it can, legal or not, about whatever another tenant has.

It knows all names: the other's tenant, types, jobs, uploads, schedules and keys of idempotency, and
the name and the session of the worker that runs its jobs. It has a key of its own, and a worker's
key of its own. Whatever it says, the server answers, and never with a failure of its own.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
from tests.api.house import House
from tests.api.jobs.test_uploads import put
from tests.api.payloads.test_text_checks import BAD
from tests.api.quiet_tenant import ENDS, KEY, SCHEDULE, QuietTenant
from tests.api.worker import HandWorker

NAMES = 40  # that one flood makes
SPLICE = b'{},"x":1},{"job":"%b","epoch":1,"token":"0","type":"%b","tenant":"%b","payload":{}'
REFUSED = b'{"type":"object","required":["never"]}'
Deed = Callable[["EnemyTenant", int, Any], Awaitable[None]]


class EnemyTenant:
    def __init__(self, house: House, quiet: QuietTenant) -> None:
        self._house = house
        self._quiet = quiet
        self.name, key = house.new_tenant()
        self._client = house.caller(key)
        self._nobody = house.caller()
        own = house.new_key({"scope": "worker", "tenant": self.name})
        self._worker = HandWorker(house.caller(own))
        self.type = f"enemy.{secrets.token_hex(5)}"

    async def leave(self) -> None:
        await self._worker.leave()
        for client in (self._client, self._nobody, self._worker.client):
            await client.aclose()

    async def play(self, deeds: list[tuple[str, int, Any]]) -> None:
        for name, number, value in deeds:
            await DEEDS[name](self, number, value)

    # -- what it can name --------------------------------------------------------------------------

    def _job(self, number: int) -> str:
        """One of the other's, if there is any yet."""
        jobs = self._quiet.jobs or ["01890000-0000-7000-8000-00000000dead"]
        return jobs[number % len(jobs)]

    def _type(self, number: int) -> str:
        return [*self._quiet.types, self.type][number % 3]

    def _tenant(self, number: int) -> str:
        return [self._quiet.name, self.name, "#1", f"#{1 << 70}", "", "never-was"][number % 6]

    async def _say(self, method: str, path: str, body: Any = None, **more: Any) -> httpx2.Response:
        text = None if body is None else json.dumps(body)  # NaN too, which is no JSON
        headers = {"content-type": "application/json", **more.pop("headers", {})}
        reply = await self._client.request(method, path, content=text, headers=headers, **more)
        return _answered(reply)

    # -- as a tenant -------------------------------------------------------------------------------

    async def submit(self, number: int, value: Any) -> None:
        wish = [*ENDS, "crash"][number % (len(ENDS) + 1)]
        payload: Any = {"do": wish, "n": value} if number % 4 else value
        job = {"type": self._type(number), "payload": payload, "priority": number % 11}
        headers = {"idempotency-key": KEY} if number % 2 else {}
        await self._say("POST", "/v1/jobs", job, headers=headers)

    async def submit_batch(self, number: int, value: Any) -> None:
        jobs = [{"type": self._type(n), "payload": {"n": value}} for n in range(3)]
        more: list[Any] = [{"type": self.type, "payload": value}, value][: number % 3]
        headers = {"idempotency-key": KEY}
        await self._say("POST", "/v1/jobs/batch", {"jobs": [*jobs, *more]}, headers=headers)

    async def flood_names(self, number: int, value: Any) -> None:
        jobs = [{"type": f"{self.type}.{secrets.token_hex(4)}"} for _ in range(NAMES)]
        await self._say("POST", "/v1/jobs/batch", {"jobs": jobs})

    async def upload(self, number: int, value: Any) -> None:
        job, kind = self._job(number), self._type(number)
        spliced = SPLICE % (job.encode(), kind.encode(), self._quiet.name.encode())
        bodies = [json.dumps({"x": value}).encode(), json.dumps(value).encode(), b"", b"{" * 99]
        body = [*bodies, spliced, *BAD.values()][number % (len(bodies) + 1 + len(BAD))]
        made = (await self._say("POST", "/v1/uploads")).json()
        if "url" in made:
            _answered(await put(self._house, made["url"], body))
            await self._say("POST", "/v1/jobs", {"type": kind, "payload_upload": made["id"]})

    async def use_anothers_upload(self, number: int, value: Any) -> None:
        made = (await self._say("POST", "/v1/uploads")).json()
        if not self._quiet.uploads or "url" not in made:
            return
        other = self._quiet.uploads[-1]
        await self._say("POST", "/v1/jobs", {"type": self.type, "payload_upload": other})
        ours = self._house.platform.directory.id_of(self.name)
        theirs = self._house.platform.directory.id_of(self._quiet.name)
        forged = made["url"].replace(made["id"], other)
        for url in (forged, forged.replace(f"tenant={ours}", f"tenant={theirs}")):
            reply = await put(self._house, url, b'{"do":"die"}')
            assert reply.status_code == 403, reply.text

    async def touch_job(self, number: int, value: Any) -> None:
        path = f"/v1/jobs/{self._job(number)}"
        for method, leaf in (
            ("GET", ""), ("DELETE", ""), ("PATCH", ""), ("GET", "/payload"), ("GET", "/result"),
            ("GET", "/explain"),
        ):  # fmt: skip
            reply = await self._say(method, path + leaf, {"priority": 9})
            assert reply.status_code >= 400, (method, path + leaf, reply.text)

    async def touch_dead_letter(self, number: int, value: Any) -> None:
        path = f"/v1/dead-letters/{self._job(number)}"
        for method, leaf in (("GET", ""), ("POST", "/replay"), ("DELETE", "")):
            assert (await self._say(method, path + leaf, {})).status_code >= 400

    async def touch_many(self, number: int, value: Any) -> None:
        wishes: list[Any] = [{}, {"type": self._type(number)}, {"state": "queued"}, value]
        wish = wishes[number % 4]
        for act in ("cancel", "replay", "discard"):
            body = {"act": act, "filter": wish, "all": True}
            await self._say("POST", "/v1/bulk-actions", body)

    async def schedule(self, number: int, value: Any) -> None:
        path = f"/v1/schedules/{SCHEDULE}"
        body = {"type": self._type(number), "cron": "* * * * *", "payload": {"do": "die"}}
        await self._say("PUT", path, value if number % 5 == 0 else body)
        leaf = ["/trigger", "/pause", "/resume", ""][number % 4]
        await self._say("DELETE" if not leaf else "POST", path + leaf)

    async def pause(self, number: int, value: Any) -> None:
        wish: Any = [
            {"type": self._type(number)}, {}, {"tenant": self._quiet.name}, {"pool": "short"},
            {"tenant": self.name, "pool": "long"}, value,
        ][number % 6]  # fmt: skip
        await self._say("POST", "/v1/pauses", wish)
        if number % 2 and isinstance(wish, dict):
            texts = {str(name): str(one) for name, one in wish.items()}
            await self._say("DELETE", "/v1/pauses", params=texts)

    async def operate(self, number: int, value: Any) -> None:
        """All of it is for operators."""
        for method, path, body in (
            ("PATCH", f"/v1/tenants/{self._quiet.name}", {"weight": 1, "cap": 1}),
            ("POST", "/v1/tenants", {"name": "more"}),
            ("PUT", "/v1/tiers/standard", {"weight": 1}),
            ("PUT", "/v1/pools/short", {"slots": 1}),
            ("PUT", f"/v1/job-types/{self._type(0)}", {"attempts": 1}),
            ("DELETE", f"/v1/job-types/{self._type(0)}", {}),
            ("POST", "/v1/keys", {"scope": "operator"}),
            ("POST", "/v1/workers/hand-1/drain", {}),
        ):
            for client in (self._client, self._worker.client, self._nobody):
                reply = _answered(await client.request(method, path, json=body))
                assert reply.status_code in (401, 403), (path, reply.text)

    # -- as a worker -------------------------------------------------------------------------------

    async def hello(self, number: int, value: Any) -> None:
        types = [
            {"name": self._type(n), "attempts_max": 1, "deliveries_max": 1, "timeouts_max": 1,
             "dependencies_max": 1, "pool": ["short", "long"][number % 2], "timeout_ms": 1,
             "dependency": "theirs", "schema": json.loads(REFUSED), "version": "9"}
            for n in range(3)
        ]  # fmt: skip
        hello: Any = {"types": types, "slots": {"short": number * 10, "long": number}}
        if number % 5 == 0:
            hello = value
        await self._exchange(hello=hello, running=self._held(number), draining=number % 3 == 0)

    async def report(self, number: int, value: Any) -> None:
        kind = ["succeeded", "failed", "cancelled", "snoozed", "returned", "won"][number % 6]
        lease = self._lease(number)
        said = {"n": number, "kind": kind, "ran_us": 1, "result": value, "failure": "permanent"}
        hello = {"types": [{"name": self._type(0)}], "slots": {}}
        more = {"hello": hello, "running": [lease]} if number % 2 else {}
        await self._exchange(reports=[{**lease, **said}], **more)

    async def run_own(self, number: int, value: Any) -> None:
        """Its own jobs, with results that nobody could read."""
        await self._say("POST", "/v1/jobs", {"type": self.type})
        hello = {"types": [{"name": self.type}], "slots": {"short": 4}}
        heard = await self._exchange(hello=hello, running=[])
        texts = list(BAD.values())
        for lease in heard.get("leases", ()):
            assert lease["tenant"] == self.name
            report = self._worker.report(lease, result="HERE")
            body = json.dumps({"session": self._worker.session, "reports": [report]}).encode()
            await self._post(body.replace(b'"HERE"', texts[number % len(texts)]))

    async def run_anothers_type(self, number: int, value: Any) -> None:
        """Its own jobs, by its own worker: how long those run is nobody else's to expect."""
        await self._say("POST", "/v1/jobs", {"type": self._quiet.rare, "pool": "medium"})
        hello = {"types": [{"name": self._quiet.rare}], "slots": {"medium": 4}}
        heard = await self._exchange(hello=hello, running=[], wait_ms=200)
        reports = [self._worker.report(lease, result=number) for lease in heard.get("leases", ())]
        await self._exchange(reports=reports)

    async def checkpoint(self, number: int, value: Any) -> None:
        home, lease = "/v1/workers/hand-1", self._lease(number)
        client = self._worker.client
        body = json.dumps({**lease, "number": 1, "state": value})
        reply = _answered(await client.post(f"{home}/checkpoints", content=body))
        assert reply.status_code >= 400
        query = {"tenant": lease["tenant"], "epoch": "9"}
        for leaf in ("checkpoints", "payloads"):
            reply = _answered(await client.get(f"{home}/{leaf}/{lease['job']}", params=query))
            assert reply.status_code >= 400

    async def say_anything(self, number: int, value: Any) -> None:
        body = json.dumps(value).encode()
        await self._post(body if number % 2 else b"\xff" + body)
        message = {"session": self._worker.session, "running": value, "reports": value}
        await self._post(json.dumps(message).encode())

    async def steal_session(self, number: int, value: Any) -> None:
        """Speak in the session of the worker that runs the other's jobs, once it has opened it."""
        if not self._quiet.jobs:
            return
        session, lease = self._quiet.worker.session, self._lease(number)
        hello = {"types": [{"name": self._type(number)}], "slots": {"short": number}}
        said: list[dict[str, Any]] = [
            {"hello": hello, "running": []}, {"goodbye": True}, {"running": [lease]},
            {"reports": [{**lease, "n": number, "kind": "succeeded", "ran_us": 1}]},
        ]  # fmt: skip
        await self._post(json.dumps({"session": session, **said[number % 4]}).encode())

    async def goodbye(self, number: int, value: Any) -> None:
        await self._exchange(goodbye=True)

    def _lease(self, number: int) -> dict[str, Any]:
        """One of the other's, as far as it can be guessed."""
        tenant, token = self._tenant(number), "01"[number % 2] * 32
        return {"job": self._job(number), "tenant": tenant, "epoch": 1 + number % 3, "token": token}

    def _held(self, number: int) -> list[dict[str, Any]]:
        return [self._lease(n) | {"progress": {"forged": n}} for n in range(number % 4)]

    async def _exchange(self, **message: Any) -> dict[str, Any]:
        body = json.dumps({"session": self._worker.session, **message}).encode()
        heard = (await self._post(body)).json()
        for lease in heard.get("leases", ()):
            assert lease["tenant"] == self.name
        assert not set(heard.get("cancel", ())) & set(self._quiet.jobs)
        found: dict[str, Any] = heard
        return found

    async def _post(self, body: bytes) -> httpx2.Response:
        """By the name of the worker that runs the other's jobs."""
        path = "/v1/workers/hand-1/exchange"
        return _answered(await self._worker.client.post(path, content=body))


def _answered(reply: httpx2.Response) -> httpx2.Response:
    assert reply.status_code < 500, (str(reply.url), reply.status_code, reply.text)
    return reply


DEEDS: dict[str, Deed] = {
    one.__name__: one
    for one in (
        EnemyTenant.submit, EnemyTenant.submit_batch, EnemyTenant.flood_names, EnemyTenant.upload,
        EnemyTenant.use_anothers_upload, EnemyTenant.touch_job, EnemyTenant.touch_dead_letter,
        EnemyTenant.touch_many, EnemyTenant.schedule, EnemyTenant.pause, EnemyTenant.operate,
        EnemyTenant.hello, EnemyTenant.report, EnemyTenant.run_own,
        EnemyTenant.run_anothers_type, EnemyTenant.checkpoint, EnemyTenant.say_anything,
        EnemyTenant.steal_session, EnemyTenant.goodbye,
    )
}  # fmt: skip
