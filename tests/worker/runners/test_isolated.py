"""Jobs with a process to themselves: real processes, each ended for the reason that is reported."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.worker.platform import fact, job_id, lease

from fairway.core.errors import InvalidRequest
from fairway.core.run.outcome import Outcome
from fairway.core.run.process_limits import RunLimits
from fairway.wire.exchange import Lease, Report
from fairway.worker.limits.enforcement_level import EnforcementLevel
from fairway.worker.pipe.pipe import Declared, RunnerMessage
from fairway.worker.runners import isolated
from fairway.worker.runners.isolated import IsolatedRuns
from fairway.worker.runners.runner_process import RunnerProcess
from fairway.worker.runners.spares import Spares

LONE = Declared(name="lone", mode="process", is_mode_chosen=True)


class House:
    """Isolated runs without a fleet: how each ended, and whether it has begun."""

    def __init__(self) -> None:
        self.ends: dict[str, Outcome | Report] = {}
        self.begun: set[str] = set()
        self.failures = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.spares = Spares()
        self.ready = self._ready  # how runners start; a test may change it
        self.runs = IsolatedRuns(
            "tests.worker.odd_jobs:app", EnforcementLevel([], is_measurable=True, is_linux=True),
            RunLimits(), self._hear, self._end,
            ready=lambda runner: self.ready(runner), cannot_start=self._cannot_start,
        )  # fmt: skip

    def _hear(self, words: RunnerMessage) -> None:
        self.begun |= {one.job for one in words.progress}
        self.ends |= {one.job: one for one in words.ended}

    def _end(self, lease: Lease, end: Outcome) -> None:
        self.ends[lease.job] = end

    async def _ready(self, runner: RunnerProcess) -> list[Declared]:
        await runner.start(self.spares)
        return await runner.declared

    def _cannot_start(self) -> None:
        self.failures += 1

    def begin(self, number: int, seconds: float = 0.0, **more: Any) -> asyncio.Task[None]:
        return self.begin_lease(lease(number, "lone", "long", {"seconds": seconds}, **more))

    def begin_lease(self, one: Lease, declared: Declared = LONE) -> asyncio.Task[None]:
        task = asyncio.create_task(self.runs.run(one, declared))
        self._tasks.add(task)
        return task

    async def ended(self, number: int) -> Outcome | Report:
        await fact(lambda: job_id(number) in self.ends)
        return self.ends[job_id(number)]


@pytest.fixture
async def house(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    monkeypatch.setattr(isolated, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(isolated, "IDLE_LOOK_SECONDS", 0.02)
    made = House()
    watch = asyncio.create_task(made.runs.watch())
    yield made
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)
    await made.runs.stop()
    await made.spares.stop()


async def test_a_runner_that_ended_calmly_serves_the_next_job(house: House) -> None:
    house.begin(1)
    first = await house.ended(1)
    house.begin(2)
    second = await house.ended(2)
    assert isinstance(first, Report)
    assert isinstance(second, Report)
    assert bytes(first.result) == bytes(second.result) != b"null", "one process, one after another"
    assert len(house.runs.pids) == 1


async def test_two_at_a_time_have_a_process_each(house: House) -> None:
    house.begin(1, 600)
    house.begin(2, 600)
    await fact(lambda: house.begun == {job_id(1), job_id(2)})
    assert len(house.runs.pids) == 2
    assert house.runs.runner_of(job_id(1)) is not house.runs.runner_of(job_id(2))
    assert house.runs.has_begun


async def test_one_past_its_time_is_killed_from_outside(house: House) -> None:
    house.begin(1, 600, timeout_ms=1)
    end = await house.ended(1)
    assert (end.kind, end.failure) == ("failed", "timeout")
    assert job_id(1) not in house.runs


async def test_one_that_does_not_stop_when_asked_is_cancelled_by_force(house: House) -> None:
    stubborn = replace(LONE, cancel_grace_ms=50)
    house.begin_lease(lease(1, "lone", "long", {"seconds": 600}), stubborn)
    await fact(lambda: job_id(1) in house.begun)
    house.runs.cancel(job_id(1))
    house.runs.cancel(job_id(1))  # its time counts from the first
    assert (await house.ended(1)).kind == "cancelled"


async def test_one_that_has_not_begun_is_cancelled_or_handed_back_at_once(house: House) -> None:
    cancelled, returned = house.begin(1), house.begin(2)
    await asyncio.sleep(0)
    house.runs.cancel(job_id(1))
    house.runs.drain()
    kinds = {job: end.kind for job, end in house.ends.items()}
    assert kinds == {job_id(1): "cancelled", job_id(2): "returned"}
    await asyncio.gather(cancelled, returned)
    assert house.begun == set()


async def test_one_that_was_given_up_is_killed_and_nobody_hears_of_it(house: House) -> None:
    house.begin(1, 600)
    await fact(lambda: job_id(1) in house.begun)
    (pid,) = house.runs.pids
    house.runs.give_up(job_id(1))
    await fact(lambda: not house.runs.pids)
    assert house.ends == {}
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_newer_lease_is_not_ended_by_the_death_of_the_old_run(house: House) -> None:
    house.begin(1, 600)
    await fact(lambda: job_id(1) in house.begun)
    house.runs.give_up(job_id(1))
    newer = replace(lease(1, "lone", "long"), epoch=2)
    house.begin_lease(newer)
    end = await house.ended(1)
    assert isinstance(end, Report)
    assert (end.kind, end.epoch) == ("succeeded", 2)


async def test_a_run_that_dies_is_a_crash_and_the_next_of_its_type_waits(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.begin(1, 600)
    await fact(lambda: job_id(1) in house.begun)
    runner = house.runs.runner_of(job_id(1))
    assert runner is not None
    runner.kill()
    end = await house.ended(1)
    assert (end.kind, end.failure) == ("failed", "worker_crash")
    assert "SIGKILL" in msgspec.json.decode(end.error or b"")["message"]
    assert house.runs._deaths == {"lone": 1}
    house.begin(2)
    assert (await house.ended(2)).kind == "succeeded"
    assert house.runs._deaths == {}, "one that ends well makes up for it"


async def test_where_no_process_can_be_started_the_job_goes_back(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolated, "HAND_BACK_SECONDS", 0.15)

    async def never(runner: RunnerProcess) -> list[Declared]:
        runner.declared.cancel()
        raise OSError("no process")

    house.ready = never
    house.begin(1)
    assert (await house.ended(1)).kind == "returned"
    assert house.failures >= 2, "it was tried again, and each time was told"


async def test_an_app_that_does_not_load_any_more_costs_a_delivery(house: House) -> None:
    async def never(runner: RunnerProcess) -> list[Declared]:
        runner.declared.cancel()
        raise InvalidRequest("no app")

    house.ready = never
    house.begin(1)
    end = await house.ended(1)
    assert (end.failure, house.runs._deaths["lone"]) == ("worker_crash", 1)
