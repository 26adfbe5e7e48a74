"""The whole process stays under its stated ceiling, whatever is thrown at it at once."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest
from tests.acceptance.house import House

from fairway.core.tenant import TenantSettings
from fairway.runtime.random_ids import new_api_key
from fairway.runtime.settings import load
from fairway.services.memory_ceiling import ceiling_bytes
from fairway.store.registry import tenants

MB = 1 << 20
#: A small server: less room for everything, so that a flood that fits into a test is too much.
SMALL = {
    "FAIRWAY_CONNECTIONS_MAX": "400",
    "FAIRWAY_BODY_ROOM_BYTES_MAX": str(64 * MB),
    "FAIRWAY_CHECKPOINT_BYTES_MAX": str(4 * MB),
    "FAIRWAY_UNREAD_BYTES_MAX": str(16 * MB),
    "FAIRWAY_WINDOW_BYTES": str(8 * MB),
    "FAIRWAY_WINDOW_JOBS": "10000",
    "FAIRWAY_RESULTS_WAITING_BYTES_MAX": str(32 * MB),
}
TENANTS = 4
LARGE = "flood.large"  # the type of jobs with large results
RESULT = 3 * MB
REPLY_SECONDS = 60.0  # on any machine


def peak_bytes(pid: int) -> int:
    """The most memory that a process has had, since it began."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) << 10


class Flood:
    """Callers that know no manners but wait for `100 Continue` before they send what is large."""

    def __init__(self, url: str) -> None:
        self._port = urlsplit(url).port
        self.statuses: Counter[str] = Counter()
        self.sent_bytes = self.meant_bytes = 0

    async def post(self, name: str, path: str, key: str, body: list[bytes]) -> bytes:
        """What is answered; its status is counted."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        size = sum(map(len, body))
        head = (
            f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n"
            f"expect: 100-continue\r\ncontent-length: {size}\r\nconnection: close\r\n\r\n"
        )
        self.meant_bytes += size
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                writer.write(head.encode())
                status = (await reader.readline()).split()[1].decode()
                if status == "100":
                    await reader.readline()
                    for part in body:
                        writer.write(part)
                        await writer.drain()
                    self.sent_bytes += size
                    status = (await reader.readline()).split()[1].decode()
                reply = await reader.read()
        finally:
            writer.close()
        self.statuses[f"{name} {status}"] += 1
        return reply if status == "200" else b""


class Reporter:
    """A shared worker with large results, which says each until it is heard."""

    def __init__(self, flood: Flood, key: str, slots: int) -> None:
        self._flood = flood
        self._key = key
        self._session = secrets.token_hex(16)
        self._path = "/v1/workers/reporter/exchange"
        self._hello = {"types": [{"name": LARGE}], "slots": {"short": slots}}
        self._must_greet = True
        self._held: dict[str, dict[str, Any]] = {}
        self.recorded: set[int] = set()

    async def say(self, name: str = "beat", **message: Any) -> dict[str, Any]:
        """With a hello at first, after a call that failed, and when it is asked for."""
        if self._must_greet:
            message |= {"hello": self._hello, "running": [*self._held.values()]}
            self._must_greet = False
        body = json.dumps({"session": self._session, **message}).encode()
        reply = await self._flood.post(name, self._path, self._key, [body])
        heard: dict[str, Any] = json.loads(reply.partition(b"\r\n\r\n")[2] or b"{}")
        self._must_greet |= heard.get("resync", not heard)
        self.recorded.update(heard.get("recorded", []))
        assert not heard.get("refused"), heard
        return heard

    async def leases(self, count: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while len(found) < count:
            found += (await self.say(wait_ms=200)).get("leases", [])
            self._held = {lease["job"]: _proof(lease) for lease in found}
        return found

    async def report(self, number: int, lease: dict[str, Any]) -> None:
        report = _proof(lease)
        report |= {"n": number, "kind": "succeeded", "ran_us": 1, "result": "x" * RESULT}
        while number not in self.recorded:
            if not await self.say("result", reports=[report]):
                await asyncio.sleep(0.2)  # there was no room
            await self.say(wait_ms=300)
        del self._held[lease["job"]]


def _proof(lease: dict[str, Any]) -> dict[str, Any]:
    return {name: lease[name] for name in ("job", "tenant", "epoch", "token")}


async def new_tenants(dsn: str) -> list[tuple[str, str]]:
    """The keys of some tenants: one to submit with, one for workers of its own."""
    found = []
    connection = await asyncpg.connect(dsn)
    try:
        for number in range(TENANTS):
            tenant = await tenants.add_tenant(
                connection, f"flood-{number}", TenantSettings(tier="enterprise")
            )
            assert tenant is not None
            api, worker = new_api_key("tenant"), new_api_key("worker")
            for key in (api, worker):
                stored = tenants.StoredKey(key.id, key.scope, tenant.id, key.secret_hash)
                await tenants.add_key(connection, stored)
            found.append((api.text, worker.text))
    finally:
        await connection.close()
    return found


@pytest.mark.timeout(200)
async def test_the_process_stays_under_its_stated_ceiling(
    house: House, figures: dict[str, str]
) -> None:
    """The largest bodies of every kind, by several tenants and by shared workers, all at once."""
    house.settings = house.settings | SMALL
    ceiling = ceiling_bytes(load(house.settings))
    keys = await new_tenants(house.dsn)
    server = house.start_server(anew=True)
    await server.ready()
    at_rest = peak_bytes(server.pid)
    flood = Flood(server.url)
    part = b"x" * (4 * MB - 4096)
    call = [b'{"session":"%s","note":"' % secrets.token_hex(16).encode(), *[part] * 5, b'"}']
    job = json.dumps({"type": "flood", "payload": {"text": "x" * 60_000}}).encode()
    batch = [b'{"jobs":[', b",".join([job] * 250), b"]}"]
    large = json.dumps({"type": LARGE}).encode()
    posts: list[Coroutine[Any, Any, Any]] = [
        flood.post("shared worker", f"/v1/workers/w{n}/exchange", house.worker_key, call)
        for n in range(16)
    ]
    for number, (key, worker_key) in enumerate(keys):
        path = f"/v1/workers/own-{number}/exchange"
        posts += [flood.post("own worker", path, worker_key, call) for _ in range(4)]
        posts += [flood.post("tenant", "/v1/jobs/batch", key, batch) for _ in range(6)]
    await asyncio.gather(*(flood.post("job", "/v1/jobs", key, [large]) for key, _ in keys * 2))
    assert flood.statuses == {"job 202": 2 * TENANTS}
    reporter = Reporter(flood, house.worker_key, slots=2 * TENANTS)
    leases = await reporter.leases(2 * TENANTS)
    posts += [reporter.report(number, lease) for number, lease in enumerate(leases, 1)]
    small = [flood.post("small", "/v1/jobs", key, [job]) for key, _ in keys for _ in range(10)]
    await asyncio.gather(*posts, *small)
    peak = peak_bytes(server.pid)
    figures["memory: at rest, at most, ceiling"] = " / ".join(
        f"{size >> 20} MB" for size in (at_rest, peak, ceiling)
    )
    figures["memory: bodies meant, taken"] = (
        f"{flood.meant_bytes >> 20} / {flood.sent_bytes >> 20} MB"
    )
    statuses = flood.statuses
    assert peak < ceiling, statuses
    assert reporter.recorded == set(range(1, 2 * TENANTS + 1)), "no result is lost"
    assert statuses["small 202"] == len(small), statuses
    for who, good in (("shared worker", "200"), ("own worker", "200"), ("tenant", "200")):
        assert statuses[f"{who} {good}"], statuses
        assert statuses[f"{who} 503"] + statuses[f"{who} 429"], statuses
    assert sum(statuses.values()) == sum(
        count for name, count in statuses.items() if name[-3:] in ("200", "202", "429", "503")
    ), statuses
