"""A small company's platform for the pictures in docs: tenants, workers, an hour of history."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

from tests.api.house import House
from tests.api.worker import HandWorker
from tests.browser.aside import Aside, Caller, caller_of

from fairway.core.ids import TenantId
from fairway.core.insight.buckets import bucket_of
from fairway.core.insight.history import Stored
from fairway.core.insight.minutes import LineKind
from fairway.services.platform import Platform
from fairway.store.insight.minutes import About, MinuteLine, write_minute

TENANTS = {"acme": 40, "globex": 20, "initech": 10}
TYPES = ("report.build", "video.encode", "invoice.send")
ERROR = {
    "type": "CardDeclined",
    "message": "the bank refused order 1047",
    "stack": '  File "shop/invoices.py", line 41, in send\n    charge(order)',
}


class Worker:
    """Takes jobs and keeps them, but for those that it is told to end."""

    def __init__(self, aside: Aside, worker: HandWorker, types: tuple[str, ...]) -> None:
        self._do, self._worker, self._types = aside.do, worker, types

    def hello(self, **slots: int) -> None:
        hello = {"types": [{"name": one} for one in self._types], "slots": slots}
        self._do(self._worker.say(hello=hello, running=[]))

    def lease(self) -> dict[str, Any]:
        return self._do(self._worker.lease())

    def progress(self, lease: dict[str, Any], **said: Any) -> None:
        self._do(self._worker.say(running=[self._worker.holding(lease, progress=said)]))

    def report(self, lease: dict[str, Any], kind: str = "succeeded", **more: Any) -> None:
        self._do(self._worker.tell(self._worker.report(lease, kind, **more)))


@contextmanager
def furnished(house: House, aside: Aside) -> Iterator[dict[str, str]]:
    """The names that pictures need."""
    with ExitStack() as stack:
        callers: dict[str, Caller] = {}
        for name, weight in TENANTS.items():
            house.new_tenant(name=name, weight=weight)
            key = house.new_key({"tenant": name})
            callers[name] = stack.enter_context(caller_of(house, aside, key))
        client = house.caller(house.new_key({"scope": "worker"}))
        worker = HandWorker(client)
        stack.callback(lambda: aside.do(client.aclose()))
        stack.callback(lambda: aside.do(worker.leave()))
        house.inside(_write_history)
        yield {"tenant": "acme", **_work(callers, Worker(aside, worker, TYPES))}


def _work(callers: dict[str, Caller], worker: Worker) -> dict[str, str]:
    acme = callers["acme"]
    acme.call("PUT", "/v1/events/settings", {"job_events": True})
    orders = [
        {"type": "invoice.send", "pool": "long", "payload": {"order": 1044 + number}}
        for number in range(9)
    ]
    flow = acme.call("POST", "/v1/flows", {"kind": "group", "jobs": orders}).json()["id"]
    worker.hello(short=16, medium=8, long=6)
    for _ in range(3):
        worker.report(worker.lease(), "failed", failure="permanent", error=ERROR)
    for _ in range(6):
        worker.report(worker.lease(), result={"sent": True})
    job = acme.submit("report.build", pool="long", payload={"month": "2026-10"}, tags=["nightly"])
    lease = worker.lease()
    worker.progress(lease, done=3, total=4, text="chapter three")
    for name, jobs in (("acme", 14), ("globex", 9), ("initech", 6)):
        for number in range(jobs):
            callers[name].submit("video.encode", pool="long", payload={"clip": number})
    for number in range(5):
        callers["initech"].submit("mail.digest", pool="long", payload={"week": number})
    for _ in range(5):
        worker.lease()
    return {"job": job, "flow": flow}


async def _write_history(platform: Platform) -> None:
    await platform.loops["minutes"].stop()  # only this hour is told of
    now = platform.store_clock.now().replace(second=0, microsecond=0)
    async with platform.database.background() as connection:
        for ago in range(1, 61):
            wave = 1 + 0.5 * math.sin(ago / 7) + 0.15 * math.sin(ago * 2.3)
            lines = [
                MinuteLine(About(LineKind.POOL, TenantId(0), pool), _counts(wave, speed, late_ms))
                for pool, speed, late_ms in (
                    ("short", 900, 60),
                    ("medium", 60, 900),
                    ("long", 9, 9000),
                )
            ]
            await write_minute(connection, "server-1", now - timedelta(minutes=ago), lines)


def _counts(wave: float, speed: int, late_ms: int) -> Stored:
    runs = round(wave * speed)
    failed, late = runs // 40, round(late_ms * wave**3)
    pickup = [0] * (bucket_of(late) + 1)
    pickup[-1], pickup[len(pickup) // 2] = max(runs // 50, 1), runs
    levels = (round(wave**3 * 8), round(4 * wave), 8)
    return Stored(
        0,
        1,
        runs + 2,
        runs,
        runs - failed,
        failed,
        failed // 2,
        failed // 5,
        *levels,
        late,
        pickup,
        pickup,
    )
