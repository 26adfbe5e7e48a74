"""The attackers of the hostile hour: `python -m tests.acceptance.attacks`, until it is ended.

Each attack is a loop that a stranger, a hostile tenant or a hostile tenant's own worker could run.
Rates are bounded, so that what is measured is what an attack does to the platform and not how busy
the attackers keep this machine. What each did is written to the log as one JSON line when it ends.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import secrets
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

SILENT_CONNECTIONS = 300
DRIPPING_CONNECTIONS = 50
STREAMS = 150
PAGE_READERS = 20
RARE_SCHEDULES = 50
HEAD_BYTES = 100_000_000
POISON_PAUSE_SECONDS = 0.1  # else it is a tenant with a hundred jobs a second, like any other
CRON_BOMBS = ("*/30 0 * 2 MON#5", "*/30 0 29 2 *", "* * 31 2 *", "*/1 * * * MON#5")


class Attacker:
    def __init__(self, urls: list[str], tenant_key: str, worker_key: str) -> None:
        self._urls = urls
        self._worker_key = worker_key
        self._dice = random.Random(7)
        self._tenant = {"authorization": f"Bearer {tenant_key}"}
        # As many connections as they like: streams must not keep the other attacks waiting.
        limits = httpx2.Limits(max_connections=None)
        self._http = httpx2.AsyncClient(timeout=30, limits=limits, trust_env=False)
        self.did: Counter[str] = Counter()

    @property
    def url(self) -> str:
        return self._dice.choice(self._urls)

    def attacks(self) -> Iterator[tuple[Callable[[], Awaitable[None]], float]]:
        """Each with the pause between its blows."""
        yield self.head_of_100_mb, 5.0
        yield self.endless_request_line, 7.0
        yield self.many_numbers, 4.0
        yield self.guessed_key, 0.2
        yield self.cron_bomb, 1.0
        yield self.bad_upload, 2.0
        yield self.upload_that_nobody_uses, 3.0
        yield self.huge_result, 10.0
        yield self.absurd_delay, 5.0
        yield self.huge_words, 10.0
        yield self.slow_question, 1.0
        yield self.refused_batch, 3.0
        yield self.very_many_streams, 5.0
        yield self.cancelled_page, 2.0
        yield self.pause_and_resume, 1.0
        yield self.backfill, 5.0
        for _ in range(PAGE_READERS):
            yield self.unread_page, 2.0
            yield self.rare_schedules, 2.0
            yield self.is_it_ready, 2.0
        for _ in range(SILENT_CONNECTIONS):
            yield self.silence, 0.5
        for _ in range(DRIPPING_CONNECTIONS):
            yield self.dripping_head, 0.5
        for _ in range(STREAMS):
            yield self.stream, 1.0
        yield self.poison_rows, 0.5
        yield self.deaf_worker, 1.0

    async def repeat(self, attack: Callable[[], Awaitable[None]], pause_seconds: float) -> None:
        name = getattr(attack, "__name__", "")
        await asyncio.sleep(self._dice.random() * pause_seconds)
        while True:
            try:
                await attack()
                self.did[name] += 1
            except (httpx2.HTTPError, OSError, TimeoutError, ValueError) as error:
                self.did[f"{name}: {type(error).__name__}"] += 1
            await asyncio.sleep(pause_seconds * (0.5 + self._dice.random()))

    # -- strangers ---------------------------------------------------------------------------

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        place = urlsplit(self.url)
        return await asyncio.open_connection(place.hostname, place.port)

    async def _pour(self, opening: bytes) -> None:
        """One head, as large as it may become until somebody cuts it."""
        _, writer = await self._connect()
        try:
            writer.write(opening)
            for _ in range(HEAD_BYTES // 65536):
                writer.write(b"a" * 65536)
                await writer.drain()
        finally:
            writer.transport.abort()

    async def head_of_100_mb(self) -> None:
        await self._pour(b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ")

    async def endless_request_line(self) -> None:
        await self._pour(b"GET /")

    async def silence(self) -> None:
        reader, writer = await self._connect()
        try:
            await reader.read(1)
        finally:
            writer.transport.abort()

    async def dripping_head(self) -> None:
        reader, writer = await self._connect()
        try:
            writer.write(b"GET / HTTP/1.1\r\nX-A: ")
            while not reader.at_eof():
                writer.write(b"a")
                await writer.drain()
                await asyncio.sleep(3)
        finally:
            writer.transport.abort()

    async def guessed_key(self) -> None:
        headers = {"authorization": f"Bearer fw_tenant_{secrets.token_urlsafe(30)}"}
        reply = await self._http.get(f"{self.url}/v1/jobs", headers=headers)
        self._note("guessed_key", reply)

    async def is_it_ready(self) -> None:
        self._note("is_it_ready", await self._http.get(f"{self.url}/readyz"))

    # -- a hostile tenant --------------------------------------------------------------------

    async def _post(self, path: str, body: Any, name: str) -> httpx2.Response:
        reply = await self._http.post(f"{self.url}{path}", json=body, headers=self._tenant)
        self._note(name, reply)
        return reply

    def _note(self, name: str, reply: httpx2.Response) -> None:
        self.did[f"{name}: {reply.status_code}"] += 1

    async def many_numbers(self) -> None:
        text = b'{"jobs":[{"type":"steady","payload":{"n":[' + b"1," * 7_900_000 + b"1]}}]}"
        headers = self._tenant | {"content-type": "application/json"}
        reply = await self._http.post(f"{self.url}/v1/jobs/batch", content=text, headers=headers)
        self._note("many_numbers", reply)

    async def cron_bomb(self) -> None:
        body = {"cron": self._dice.choice(CRON_BOMBS), "timezone": "Europe/Lisbon"}
        await self._post("/v1/schedule-preview", body, "cron_bomb")

    async def _upload(self, content: bytes) -> str:
        made = (await self._post("/v1/uploads", {}, "upload")).json()
        if "url" not in made:
            return ""
        reply = await self._http.put(made["url"], content=content)
        self._note("upload", reply)
        return str(made["id"])

    async def bad_upload(self) -> None:
        upload = await self._upload(
            self._dice.choice((b"}}}} no json", b"not json", b"[1]", b"\0"))
        )
        await self._post("/v1/jobs", {"type": "bloat", "payload_upload": upload}, "bad_upload")

    async def upload_that_nobody_uses(self) -> None:
        await self._upload(b'{"text":"' + b"x" * 2_000_000 + b'"}')

    async def huge_result(self) -> None:
        await self._post("/v1/jobs", {"type": "bloat", "payload": {"megabytes": 12}}, "huge_result")

    async def absurd_delay(self) -> None:
        how = self._dice.choice(("snooze", "dependency"))
        await self._post("/v1/jobs", {"type": "forever", "payload": {"how": how}}, "absurd_delay")

    async def huge_words(self) -> None:
        await self._post("/v1/jobs", {"type": "babble", "payload": {"megabytes": 20}}, "huge_words")

    async def slow_question(self) -> None:
        await self._post("/v1/bulk-actions", {"act": "cancel", "dry_run": True}, "slow_question")

    async def refused_batch(self) -> None:
        jobs = [{"type": f"made.up.{secrets.token_hex(4)}", "payload": {}} for _ in range(50)]
        await self._post("/v1/jobs/batch", {"jobs": jobs}, "refused_batch")

    async def very_many_streams(self) -> None:
        """Jobs that nobody runs, each in a line of its own."""
        jobs = [
            {
                "type": "made.up",
                "priority": n % 10,
                "fair_key": str(n),
                "payload": {"n": "n" * 2000},
            }
            for n in range(1000)
        ]
        await self._post("/v1/jobs/batch", {"jobs": jobs}, "very_many_streams")

    async def cancelled_page(self) -> None:
        wanted = {"act": "cancel", "filter": {"type": "made.up"}}
        await self._post("/v1/bulk-actions", wanted, "cancelled_page")

    async def pause_and_resume(self) -> None:
        await self._post("/v1/pauses", {"pool": "medium"}, "pause_and_resume")
        query = {"pool": "medium"}
        url = f"{self.url}/v1/pauses"
        await self._http.delete(url, params=query, headers=self._tenant)

    async def unread_page(self) -> None:
        """The heaviest page there is, asked for and not read."""
        _, writer = await self._connect()
        try:
            key = self._tenant["authorization"].encode()
            writer.transport.pause_reading()  # type: ignore[attr-defined]  # it is a socket's
            writer.write(b"GET /v1/jobs?limit=200 HTTP/1.1\r\nHost: x\r\nAuthorization: ")
            writer.write(key + b"\r\n\r\n")
            await writer.drain()
            await asyncio.sleep(10)
        finally:
            writer.transport.abort()

    async def rare_schedules(self) -> None:
        """Expressions that are dear to work out: made, changed, and all of them looked at."""
        name = f"rare-{self._dice.randrange(RARE_SCHEDULES)}"
        body = {"cron": "*/30 0 29 2 *", "timezone": "Europe/Lisbon", "type": "made.up"}
        url = f"{self.url}/v1/schedules"
        put = await self._http.put(f"{url}/{name}", json=body, headers=self._tenant)
        self._note("rare_schedules", put)
        found = await self._http.get(url, params={"limit": 200}, headers=self._tenant)
        self._note("rare_schedules", found)

    async def backfill(self) -> None:
        """A thousand large jobs for the price of one request."""
        body = {
            "every_seconds": 10, "starts_at": "2020-01-01T00:00:00Z", "timezone": "UTC",
            "type": "made.up", "paused": True, "payload": {"text": "x" * 60_000},
        }  # fmt: skip
        url = f"{self.url}/v1/schedules/heavy"
        await self._http.put(url, json=body, headers=self._tenant)
        hour = self._dice.randrange(20)
        day = f"2021-01-{self._dice.randrange(1, 28):02}"
        past = {"since": f"{day}T{hour:02}:00:00Z", "until": f"{day}T{hour + 2:02}:00:00Z"}
        await self._post("/v1/schedules/heavy/backfill", past, "backfill")

    async def stream(self) -> None:
        """An event stream that is never read to its end."""
        job = {"type": "nobody.runs.this", "payload": {}, "delay_seconds": 3600}
        made = (await self._post("/v1/jobs", job, "stream")).json()
        if "id" in made:
            url = f"{self.url}/v1/jobs/{made['id']}/events"
            async with self._http.stream("GET", url, headers=self._tenant, timeout=60) as reply:
                self._note("stream", reply)
                await asyncio.sleep(20)

    # -- a hostile tenant's own worker -------------------------------------------------------

    async def _exchange(self, session: str, **message: Any) -> dict[str, Any]:
        reply = await self._http.post(
            f"{self.url}/v1/workers/hostile/exchange",
            json={"session": session, **message},
            headers={"authorization": f"Bearer {self._worker_key}"},
        )
        if reply.status_code != 200:
            raise ValueError(reply.status_code)
        found: dict[str, Any] = reply.json()
        return found

    async def _take(self, kind: str, slots: int, **job: Any) -> tuple[str, list[dict[str, Any]]]:
        body = {"type": kind, "payload": {}, "pool": "short", **job}
        await self._post("/v1/jobs", body, kind)
        session = secrets.token_hex(16)
        hello = {"types": [{"name": kind}], "slots": {"short": slots}}
        said = await self._exchange(session, hello=hello, running=[])
        leases = said.get("leases", [])
        for _ in range(10):
            if leases:
                break
            said = await self._exchange(session, wait_ms=1000)
            leases = said.get("leases", [])
        return session, leases

    async def poison_rows(self) -> None:
        """Hand jobs back with run times whose sum no column holds, and words without end."""
        session, leases = await self._take("hostile.poison", 5)
        for number in itertools.count(1):
            if not leases or number > 200:
                break
            lease = leases[0]
            report = {key: lease[key] for key in ("job", "tenant", "epoch", "token")}
            report |= {"n": number, "kind": "returned", "ran_us": 2**53 - 1}
            await asyncio.sleep(POISON_PAUSE_SECONDS)
            said = await self._exchange(session, reports=[report], wait_ms=1000)
            leases = said.get("leases", [])
            while not leases and number not in said.get("recorded", []):
                said = await self._exchange(session, wait_ms=1000)
                leases = said.get("leases", [])
        await self._exchange(session, goodbye=True)

    async def deaf_worker(self) -> None:
        """Takes jobs with a limit of two seconds, beats, and never ends one."""
        session, leases = await self._take("hostile.deaf", 5, timeout_seconds=2)
        self.did["deaf: leases"] += len(leases)
        for _ in range(40):
            said = await self._exchange(session, wait_ms=2000)
            if said.get("resync"):
                return
            self.did["deaf: revoked"] += len(said.get("revoked", []))


async def main() -> None:
    urls, tenant_key, worker_key = sys.argv[1].split(","), *sys.argv[2:4]
    attacker = Attacker(urls, tenant_key, worker_key)
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, over.set)
    tasks = [asyncio.create_task(attacker.repeat(*one)) for one in attacker.attacks()]
    await over.wait()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    sys.stdout.write(json.dumps(attacker.did) + "\n")


def _stand_back() -> None:
    """They stand for other machines: what they burn here is not the platform's.

    Where the kernel shares out processors by session first, a policy counts within one only.
    """
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    session = Path("/proc/self/autogroup")
    if session.exists():
        session.write_text("19")


if __name__ == "__main__":
    _stand_back()
    asyncio.run(main())
