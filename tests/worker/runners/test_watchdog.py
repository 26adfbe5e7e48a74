"""Runners that jobs share: those with an overdue job and no word are killed, and nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.worker.platform import job_id, lease

from fairway.core.ids import Epoch
from fairway.core.run.outcome import Outcome
from fairway.wire.exchange import Lease
from fairway.worker.pipe.pipe import Declared
from fairway.worker.runners.runner_process import Listener, RunnerProcess
from fairway.worker.runners.time_limits import GRACE_SECONDS
from fairway.worker.runners.watchdog import ANSWER_SECONDS_MAX, Watchdog

NAP = {"nap": Declared(name="nap", mode="loop", timeout_ms=1000)}
LATE = 1 + GRACE_SECONDS  # after this long, the job should have ended


class House:
    """A watch, and a runner that never got a process: it neither hears nor answers."""

    def __init__(self) -> None:
        self.ends: list[tuple[str, Outcome]] = []
        self.watch = Watchdog(lambda lease, end: self.ends.append((lease.job, end)))
        self.runner = RunnerProcess("nobody:app", 1, Listener(lambda *_: None, lambda *_: None))
        self.running: dict[str, Lease] = {}

    def begin(self, *numbers: int) -> None:
        for number in numbers:
            self.running[job_id(number)] = lease(number)
            self.runner.jobs[job_id(number)] = Epoch(1)

    def look(self, now: float) -> None:
        self.watch.ask_overdue([self.runner], self.running, NAP, now)


@pytest.fixture
async def house() -> AsyncIterator[House]:
    made = House()
    yield made
    made.runner.declared.cancel()
    await asyncio.sleep(0)


async def test_a_runner_that_says_nothing_of_an_overdue_job_is_killed(house: House) -> None:
    house.begin(1)
    house.look(0)
    house.look(LATE)  # asked
    house.look(LATE + ANSWER_SECONDS_MAX - 0.1)
    assert house.ends == []
    house.begin(2)  # a neighbour that is in time
    house.look(LATE + ANSWER_SECONDS_MAX)
    ((job, end),) = house.ends
    assert (job, end.failure, end.ran_us) == (job_id(1), "timeout", 1_000_000)
    assert set(house.runner.jobs) == {job_id(2)}, "whose loss is told with the runner's"


async def test_a_word_of_the_runner_is_an_answer(house: House) -> None:
    house.begin(1)
    house.look(0)
    house.look(LATE)
    house.watch.heard(house.runner)
    house.look(LATE + 0.5 * ANSWER_SECONDS_MAX)
    house.look(LATE + ANSWER_SECONDS_MAX)
    assert house.ends == [], "its time counts from when it is asked again"


async def test_a_job_that_ended_meanwhile_is_not_late(house: House) -> None:
    house.begin(1)
    house.look(0)
    house.look(LATE)
    house.runner.jobs.clear()
    house.look(LATE + ANSWER_SECONDS_MAX)
    assert house.ends == []


async def test_a_runner_that_has_not_loaded_its_app_is_neither_quiet_nor_deaf(house: House) -> None:
    for _ in range(100):
        house.watch.ping([house.runner])
    assert (house.runner.is_quiet, house.runner.is_deaf) == (False, False)
