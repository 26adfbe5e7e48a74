"""An hour among enemies: `make hostile`, or FAIRWAY_HOSTILE_SECONDS=300 for a shorter one.

A paying tenant submits a steady hundred jobs a second. First it is quiet; then everything that was
ever found to stop the platform is done to it at once, while servers and workers are restarted every
two minutes. The tenant's pick-up must stay near what it was, nothing may be lost, and what the
server holds of memory and files must not grow.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import asyncpg
import msgspec
import pytest
from tests.acceptance.house import House
from tests.acceptance.processes import ROOT, Program

from fairway.core.tenant import TenantSettings
from fairway.runtime.plain_http import HttpClient, head_lines
from fairway.runtime.random_ids import new_api_key
from fairway.store.registry import tenants

SECONDS = float(os.environ.get("FAIRWAY_HOSTILE_SECONDS", "3600"))
QUIET_SECONDS = min(60.0, SECONDS / 2)
RESTART_SECONDS = 120.0
PER_SECOND = 100
TRY_SECONDS = 5.0
P99_RATIO_MAX = 3.0
APP = "tests.acceptance.hostile_jobs:app"


class Payer:
    """Sends each job until it is accepted; each try has its own key and time, so a job may run
    twice, and a wait counts from the try that ran. It stands for another machine, so its client is
    a cheap one."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._numbers = itertools.count()
        self.accepted: set[int] = set()
        self.answers: Counter[str] = Counter()
        self.is_over = False

    async def run(self) -> None:
        began, tasks = time.monotonic(), set[asyncio.Task[None]]()
        headers = {
            "authorization": f"Bearer {self._house.api_key}",
            "content-type": "application/json",
        }
        doors = [HttpClient(url, headers) for url in self._house.urls]
        for tick in itertools.count():
            if self.is_over:
                break
            task = asyncio.create_task(self._send(doors, next(self._numbers)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            await asyncio.sleep(max(began + tick / PER_SECOND - time.monotonic(), 0))
        await asyncio.gather(*tasks)

    async def _send(self, doors: list[HttpClient], number: int) -> None:
        for again in itertools.count(number):
            payload = {"number": number, "sent": time.time()}
            body = msgspec.json.encode({"type": "steady", "payload": payload})
            key = head_lines({"idempotency-key": f"p-{number}-{again}"})
            door = doors[again % len(doors)]
            try:
                reply = await door.call("POST", "/v1/jobs", body, TRY_SECONDS, key)
            except (OSError, TimeoutError) as error:
                self.answers[type(error).__name__] += 1
            else:
                self.answers[str(reply.status)] += 1
                if reply.status == 202:
                    self.accepted.add(number)
                    return
                assert reply.status in (502, 503), reply.body
            await asyncio.sleep(0.05)


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 900)
async def test_a_paying_tenant_among_enemies(
    house: House, figures: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = house.room / "steady.txt"
    monkeypatch.setenv("HOSTILE_LOG", str(log))
    house.settings = {k: v for k, v in house.settings.items() if "SECONDS" not in k}
    await _untraced(house)
    tenant_key, worker_key = await _enemy(house.dsn)
    workers = await house.open(servers=2, workers=2, app=APP, pools=("short=50", "medium=8"))
    payer = Payer(house)
    paying = asyncio.create_task(payer.run())
    await asyncio.sleep(5)  # keys, types and connections are known
    quiet_from = _count(log)
    await asyncio.sleep(QUIET_SECONDS)
    quiet = _p99(log, quiet_from)
    attackers = _attackers(house, tenant_key, worker_key)
    watch = Watch(house)
    hostile_from, ends_at = _count(log), time.monotonic() + SECONDS
    try:
        await _live_through(house, workers, watch, ends_at)
    finally:
        attackers.send_signal(signal.SIGTERM)
        attackers.wait(30)
    hostile = _p99(log, hostile_from)
    payer.is_over = True
    await asyncio.wait_for(paying, 60)
    did = (house.room / "attacks.log").read_text()[-6000:]
    lost = await _lost(payer, log)
    figures["hostile: what was done"] = did
    figures["hostile: paying tenant"] = (
        f"{len(payer.accepted)} accepted, {len(lost)} lost, answers {dict(payer.answers)};"
        f" p99 {quiet * 1000:.1f} ms quiet, {hostile * 1000:.1f} ms among enemies"
    )
    figures["hostile: server"] = watch.summary()
    assert not lost, sorted(lost)[:10]
    assert hostile <= P99_RATIO_MAX * quiet, figures["hostile: paying tenant"]
    assert watch.is_flat(), watch.summary()


async def _live_through(house: House, workers: list[Program], watch: Watch, ends_at: float) -> None:
    """Restart something every two minutes: a worker, the second server; the first at half-time."""
    began, restarts = time.monotonic(), 0
    while (now := time.monotonic()) < ends_at:
        await asyncio.sleep(min(5.0, ends_at - now))
        watch.look()
        if time.monotonic() - began > (restarts + 1) * RESTART_SECONDS:
            restarts += 1
            await _restart(house, workers, restarts)


async def _restart(house: House, workers: list[Program], number: int) -> None:
    if number % 2:
        place = number // 2 % len(workers)
        old = workers[place]
        workers[place] = house.start_worker(app=APP, pools=("short=50", "medium=8"))
        await workers[place].says("worker ready", 60)
        old.send(signal.SIGTERM)
        await old.ended(60)
    else:
        server = house.servers[0 if number % 14 == 0 else 1]
        place = house.servers.index(server)
        server.send(signal.SIGTERM)
        await server.ended(60)
        again = house.restart(server)
        house.servers.remove(again)
        house.servers.insert(place, again)
        await again.ready(60)


class Watch:
    """Memory and open files of the first server, over each of its lives."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._lives: dict[int, list[tuple[float, int]]] = {}

    def look(self) -> None:
        pid = self._house.servers[0].pid
        try:
            status = Path(f"/proc/{pid}/status").read_text()
            files = len(os.listdir(f"/proc/{pid}/fd"))
        except (FileNotFoundError, ProcessLookupError):
            return
        line = next((one for one in status.splitlines() if one.startswith("VmRSS")), "VmRSS: 0 kB")
        self._lives.setdefault(pid, []).append((int(line.split()[1]) / 1024, files))

    def _halves(self) -> list[tuple[float, float, int, int]]:
        """Of each long life: the most memory and files in its second and in its last quarter."""
        found = []
        for life in self._lives.values():
            if len(life) >= 40:
                quarter = len(life) // 4
                early, late = life[quarter : 2 * quarter], life[-quarter:]
                found.append(
                    (max(m for m, _ in early), max(m for m, _ in late),
                     max(f for _, f in early), max(f for _, f in late))
                )  # fmt: skip
        return found

    def is_flat(self) -> bool:
        return all(
            late_mb <= 1.25 * early_mb + 20 and late_files <= 1.25 * early_files + 50
            for early_mb, late_mb, early_files, late_files in self._halves()
        )

    def summary(self) -> str:
        return "; ".join(
            f"memory {early:.0f} → {late:.0f} MB, files {files} → {later}"
            for early, late, files, later in self._halves()
        )


def _attackers(house: House, tenant_key: str, worker_key: str) -> subprocess.Popen[bytes]:
    with (house.room / "attacks.log").open("wb") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.acceptance.attacks", ",".join(house.urls), tenant_key,
             worker_key],
            cwd=ROOT, stdout=file, stderr=file, start_new_session=True,
        )  # fmt: skip


async def _untraced(house: House) -> None:
    connection = await asyncpg.connect(house.dsn)
    await connection.execute("DROP TRIGGER trace ON jobs")
    await connection.close()


async def _enemy(dsn: str) -> tuple[str, str]:
    """A tenant that pays as well, so that no small limit of its own holds it back."""
    connection = await asyncpg.connect(dsn)
    try:
        tenant = await tenants.add_tenant(connection, "enemy", TenantSettings(tier="pro"))
        assert tenant is not None
        keys = [new_api_key(scope) for scope in ("tenant", "worker")]
        for key in keys:
            stored = tenants.StoredKey(key.id, key.scope, tenant.id, key.secret_hash)
            await tenants.add_key(connection, stored)
        return keys[0].text, keys[1].text
    finally:
        await connection.close()


def _lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def _count(log: Path) -> int:
    return len(_lines(log))


def _p99(log: Path, first: int) -> float:
    waits = sorted(float(line.split()[1]) for line in _lines(log)[first:])
    return waits[int(len(waits) * 0.99)]


async def _lost(payer: Payer, log: Path) -> set[int]:
    for _ in range(60):
        ran = {int(line.split()[0]) for line in _lines(log)}
        if not payer.accepted - ran:
            break
        await asyncio.sleep(1)
    return payer.accepted - ran
