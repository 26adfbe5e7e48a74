"""The clients for people who use locust: without a worker they say so, instead of waiting."""

from __future__ import annotations

import asyncio
import runpy
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx2
import pytest
from tests.api.house import House
from tests.api.worker import HandWorker
from tests.laws.source import ROOT


@pytest.fixture
def locustfile(monkeypatch: pytest.MonkeyPatch, tenant: httpx2.AsyncClient) -> dict[str, Any]:
    """As locust loads it; of locust itself, which is not installed, only the names."""

    def as_it_is(thing: Any = None, *_: Any) -> Any:
        return thing if callable(thing) else as_it_is

    locust: Any = ModuleType("locust")
    events = SimpleNamespace(add_listener=as_it_is)
    locust.HttpUser, locust.constant = object, as_it_is
    locust.events = SimpleNamespace(init=events, test_start=events)
    locust.tag = locust.task = as_it_is
    monkeypatch.setitem(sys.modules, "locust", locust)
    key = tenant.headers["authorization"].removeprefix("Bearer ")
    monkeypatch.setenv("FAIRWAY_API_KEY", key)
    return runpy.run_path(str(ROOT / "locustfile.py"))


async def test_without_a_worker_it_says_what_to_start_and_leaves_no_job(
    locustfile: dict[str, Any], house: House, tenant: httpx2.AsyncClient
) -> None:
    why = await asyncio.to_thread(locustfile["why_nothing_would_end"], house.url)
    assert "No live worker runs this job type" in why
    assert why.endswith("fairway worker fairway.lab.jobs:app --pool medium=1000")
    (job,) = (await tenant.get("/v1/jobs")).json()["jobs"]
    assert job["state"] == "cancelled"
    stopped: list[str] = []
    runner = SimpleNamespace(quit=lambda: stopped.append("quit"))
    environment = SimpleNamespace(host=house.url, runner=runner, process_exit_code=0)
    await asyncio.to_thread(locustfile["begin"], environment)
    assert (stopped, environment.process_exit_code) == (["quit"], 1)


async def test_with_one_it_begins(
    locustfile: dict[str, Any], house: House, worker: HandWorker
) -> None:
    worker.type = "lab.score"
    await worker.hello(pool="medium")
    assert await asyncio.to_thread(locustfile["why_nothing_would_end"], house.url) == ""
