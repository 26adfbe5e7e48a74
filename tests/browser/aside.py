"""Callers and workers beside a browser test: their coroutines run on a loop of another thread.

Playwright's own loop runs in the thread of the test, where no other may.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx2
from playwright.sync_api import Page
from tests.api.house import House
from tests.api.worker import HandWorker

T = TypeVar("T")
PATIENCE_SECONDS = 60.0


class Aside:
    """Does what is async, and waits for it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="aside", daemon=True)
        self._thread.start()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_SECONDS)
        self._loop.close()


class Caller:
    """A tenant's program: what it asks of the API."""

    def __init__(self, aside: Aside, client: httpx2.AsyncClient, key: str) -> None:
        self._aside = aside
        self._client = client
        self.key = key

    def call(self, method: str, path: str, body: Any = None) -> httpx2.Response:
        return self._aside.do(self._client.request(method, path, json=body))

    def get(self, path: str) -> Any:
        reply = self.call("GET", path)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def submit(self, kind: str, **more: Any) -> str:
        reply = self.call("POST", "/v1/jobs", {"type": kind, **more})
        assert reply.status_code == 202, reply.text
        return str(reply.json()["id"])


@contextmanager
def caller_of(house: House, aside: Aside, key: str) -> Iterator[Caller]:
    client = house.caller(key)
    yield Caller(aside, client, key)
    aside.do(client.aclose())


class Hand:
    """A worker written by hand, for a job type of its own."""

    def __init__(self, aside: Aside, worker: HandWorker) -> None:
        self._do = aside.do
        self._worker = worker
        self.type = worker.type

    def hello(self, pool: str) -> None:
        self._do(self._worker.hello(pool=pool))

    def lease(self) -> dict[str, Any]:
        return self._do(self._worker.lease())

    def progress(self, lease: dict[str, Any], said: Any) -> None:
        self._do(self._worker.say(running=[self._worker.holding(lease, progress=said)]))

    def log(self, lease: dict[str, Any], text: str) -> None:
        line = {"n": 1, "at_ms": 1_769_860_800_000, "level": 20, "text": text}
        run = self._worker.holding(lease, attempt=lease["attempt"], lines=[line])
        reply = self._do(self._worker.client.post("/v1/workers/hand-1/logs", json={"runs": [run]}))
        assert reply.json()["kept"] == 1, reply.text

    def until_cancel(self, job: str) -> None:
        """Until somebody asks that this job stops."""
        for _ in range(100):
            if job in self._do(self._worker.say(wait_ms=500)).get("cancel", []):
                return
        raise AssertionError("nobody asked")

    def report(self, lease: dict[str, Any], kind: str = "succeeded", **more: Any) -> None:
        self._do(self._worker.tell(self._worker.report(lease, kind, **more)))

    def run(self, **more: Any) -> str:
        """Take one job, report how it went; answers the job."""
        return str(self._do(self._worker.run(**more))["job"])


@contextmanager
def hand_worker(house: House, aside: Aside, kind: str | None = None) -> Iterator[Hand]:
    client = house.caller(house.new_key({"scope": "worker"}))
    worker = HandWorker(client)
    worker.type = kind or worker.type
    yield Hand(aside, worker)
    aside.do(worker.leave())
    aside.do(client.aclose())


def sign_in(page: Page, key: str) -> None:
    """Without the form: the pages are what is looked at."""
    reply = page.context.request.post("/session", data={"key": key})
    assert reply.status == 200, reply.text()
