"""Runners that die in the moment they have loaded, and those that are hard to look at."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from tests.worker.platform import ignore, lease

from fairway.core.errors import InvalidRequest
from fairway.core.run.outcome import Outcome
from fairway.core.run.process_limits import RunLimits
from fairway.wire.exchange import Lease, Report
from fairway.worker.limits import usage
from fairway.worker.limits.enforcement_level import EnforcementLevel
from fairway.worker.pipe.pipe import RunnerMessage
from fairway.worker.runners.fleet import Fleet, FleetPorts
from fairway.worker.runners.runner_process import Death, Listener, RunnerProcess

APP = "tests.worker.odd_jobs:app"


class House:
    """A fleet without a keeper, and how its one run ended."""

    def __init__(self, *held: Lease) -> None:
        self.ends: list[Outcome] = []
        self.end: asyncio.Future[Outcome | Report] = asyncio.get_running_loop().create_future()
        ports = FleetPorts(
            on_runner_message=self._hear,
            on_end=self._run_ended,
            running=lambda: {lease.job: lease for lease in held},
            on_quiet=ignore,
            on_unable=ignore,
        )
        self.fleet = Fleet(APP, 2, EnforcementLevel.find(None), RunLimits(), ports, None)

    def _hear(self, words: RunnerMessage) -> None:
        for ended in words.ended:
            self.end.set_result(ended)

    def _run_ended(self, lease: Lease, end: Outcome) -> None:
        self.ends.append(end)
        if not self.end.done():
            self.end.set_result(end)


def dies_once_loaded(listener: Listener) -> Listener:
    """For the first runner. Its death is heard of before whoever waits for its first word wakes."""
    dead: list[RunnerProcess] = []

    def on_runner_message(runner: RunnerProcess, words: RunnerMessage) -> None:
        listener.on_runner_message(runner, words)
        if words.declared is not None and not dead:
            dead.append(runner)
            runner.kill()
            listener.on_death(runner, Death(-9))

    def on_death(runner: RunnerProcess, death: Death) -> None:
        if runner not in dead:  # else it was told already
            listener.on_death(runner, death)

    return Listener(on_runner_message, on_death)


@asynccontextmanager
async def stopping(fleet: Fleet) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(30):
            yield
    finally:
        await fleet.stop()


async def test_a_shared_runner_that_died_once_it_had_loaded_is_replaced() -> None:
    house = House()
    async with stopping(house.fleet):
        await house.fleet.start()
        house.fleet._listener = dies_once_loaded(house.fleet._listener)
        (shared,) = house.fleet._living
        await shared.stop()  # the one that takes its place dies, too
        house.fleet.run([lease(1)])
        assert (await house.end).kind == "succeeded"


async def test_a_worker_whose_first_runner_died_once_it_had_loaded_does_not_start() -> None:
    house = House()
    house.fleet._listener = dies_once_loaded(house.fleet._listener)
    async with stopping(house.fleet):
        with pytest.raises(InvalidRequest, match="died as soon as it had loaded"):
            await house.fleet.start()


async def test_a_job_is_not_handed_to_a_process_of_its_own_that_died() -> None:
    house = House()
    async with stopping(house.fleet):
        await house.fleet.start()
        alone = house.fleet._isolated
        alone._listener = dies_once_loaded(alone._listener)
        house.fleet.run([lease(1, "lone", "long")])
        assert (await house.end).failure == "worker_crash"


async def test_a_run_is_watched_and_ended_whatever_its_process_calls_itself() -> None:
    house = House()
    async with stopping(house.fleet):
        await house.fleet.start()
        house.fleet.run([lease(1, "nameless", "long", {"seconds": 60}, timeout_ms=1_000)])
        assert (await house.end).failure == "timeout"


# -- whose doing a death was -----------------------------------------------------------------


def dies_with(house: House, *leases: Lease, death: Death, blamed: str = "") -> list[int]:
    """A runner without a process runs these and is dead: how long each ran, as is said."""
    runner = RunnerProcess(APP, 1, house.fleet._listener)
    runner.declared.set_result([])
    runner.run(list(leases))
    runner.blamed.update([blamed] if blamed else [])
    runner._began_us = {job: began - 1_000_000 for job, began in runner._began_us.items()}
    house.fleet._after_death(runner, death)
    assert {end.failure for end in house.ends} == {"worker_crash"}
    return [end.ran_us for end in house.ends]


def of(tenant: str, number: int) -> Lease:
    return msgspec.structs.replace(lease(number), tenant=tenant)


@pytest.mark.parametrize(
    "death", [Death(3), Death(-signal.SIGKILL), Death(-signal.SIGKILL, "said what cannot be read")]
)
async def test_one_tenants_jobs_that_killed_their_runner_are_told_with_their_time(
    death: Death,
) -> None:
    leases = of("acme", 1), of("acme", 2)
    ran_us = dies_with(House(*leases), *leases, death=death)
    assert len(ran_us) == 2
    assert all(one >= 1_000_000 for one in ran_us)


async def test_nobody_pays_for_a_runner_that_one_of_several_tenants_killed() -> None:
    leases = of("acme", 1), of("globex", 2)
    assert dies_with(House(*leases), *leases, death=Death(3)) == [0, 0]


async def test_nobody_pays_for_a_runner_killed_over_the_late_job_of_another() -> None:
    (one,) = leases = (of("acme", 1),)
    assert dies_with(House(one), *leases, death=Death(-9), blamed="globex") == [0]


async def test_nobody_pays_for_what_the_kernel_killed_for_want_of_memory() -> None:
    (one,) = leases = (of("acme", 1),)
    assert dies_with(House(one), *leases, death=Death(-9, is_for_memory=True)) == [0]


async def test_a_death_is_the_kernels_when_it_killed_since_the_last_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "PROC", tmp_path)
    runner = RunnerProcess(APP, 1, House().fleet._listener)
    runner.declared.cancel()
    assert runner._death(-signal.SIGKILL) == Death(-9), "no /proc, no such word"
    vmstat = tmp_path / "vmstat"
    vmstat.write_text("nr_free_pages 7\noom_kill 4\npswpin 1\n")
    runner.ping()
    assert not runner._death(-signal.SIGKILL).is_for_memory, "of others, before"
    vmstat.write_text("nr_free_pages 7\noom_kill 5\npswpin 1\n")
    assert runner._death(-signal.SIGKILL).is_for_memory
    assert not runner._death(3).is_for_memory, "it ended by itself"
