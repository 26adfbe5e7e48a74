"""One runner as its keeper sees it: what it declares, what it runs, how it dies."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import msgspec
import pytest
from tests.worker.platform import fact, job_id, lease

from fairway.wire.exchange import Report
from fairway.worker.pipe.pipe import KeeperMessage, RunnerMessage
from fairway.worker.runners.runner_process import Death, Listener, RunnerProcess
from fairway.worker.runners.spares import Spares

APP = "tests.worker.odd_jobs:app"


class House:
    """A runner, and what was heard of it."""

    def __init__(self) -> None:
        self.words: list[RunnerMessage] = []
        self.death: asyncio.Future[Death] = asyncio.get_running_loop().create_future()
        listener = Listener(
            lambda _, words: self.words.append(words), lambda _, death: self.death.set_result(death)
        )
        self.runner = RunnerProcess(APP, 2, listener)
        self.spares = Spares()

    @property
    def ended(self) -> list[Report]:
        return [one for words in self.words for one in words.ended]

    @property
    def has_progress(self) -> bool:
        return any(words.progress for words in self.words)


@pytest.fixture
async def house() -> AsyncIterator[House]:
    made = House()
    async with asyncio.timeout(90):
        await made.runner.start(made.spares)
        await made.runner.declared
        yield made
    await made.runner.stop()
    await made.spares.stop()


async def test_it_declares_runs_and_ends_with_its_pipe(house: House) -> None:
    declared = {one.name for one in house.runner.declared.result()}
    assert {"nap", "lone"} <= declared
    house.runner.run([lease(1), lease(2)])
    assert house.runner.jobs == {job_id(1): 1, job_id(2): 1}
    await fact(lambda: len(house.ended) == 2)
    assert house.runner.jobs == {}, "it has none any more"
    assert {one.kind for one in house.ended} == {"succeeded"}
    assert house.runner.pid is not None
    await house.runner.stop()
    assert house.death.result() == Death(0)


async def test_a_run_that_was_given_up_says_nothing(house: House) -> None:
    house.runner.run([lease(1, payload={"seconds": 600})])
    await fact(lambda: house.has_progress)
    house.runner.give_up([job_id(1)])
    assert house.runner.jobs == {}
    house.runner.run([lease(2)])
    await fact(lambda: bool(house.ended))
    assert [one.job for one in house.ended] == [job_id(2)]


async def test_its_death_is_told_once_and_after_its_last_words(house: House) -> None:
    house.runner.run([lease(1, payload={"seconds": 600}), lease(2)])
    await fact(lambda: bool(house.ended) and house.has_progress)
    house.runner.kill("was in the way")
    house.runner.kill("was in the way twice")
    death = await house.death
    assert death.how == "killed, because it was in the way,"
    assert house.runner.jobs == {job_id(1): 1}, "who was lost with it"


async def test_who_says_what_cannot_be_read_is_killed_and_not_heard_again(house: House) -> None:
    garbage = (5).to_bytes(4, "big") + b"{nope"
    house.runner.run([lease(1, "say", payload={"written": garbage.hex(), "seconds": 600})])
    death = await house.death
    assert "said what cannot be read" in death.how
    assert house.ended == []


async def test_a_stopped_runner_is_seen_to_be(house: House) -> None:
    assert not house.runner.is_stopped
    os.kill(house.runner._runner_pid, signal.SIGSTOP)
    await fact(lambda: house.runner.is_stopped)
    os.kill(house.runner._runner_pid, signal.SIGCONT)
    await fact(lambda: not house.runner.is_stopped)


async def test_what_a_job_left_behind_is_killed_and_the_runner_is_not(house: House) -> None:
    house.runner.run([lease(1, "orphans", "medium", {"count": 1})])
    await fact(lambda: bool(house.ended))
    house.runner.kill_strays()
    await fact(lambda: house.runner.kill_strays() == 0)
    house.runner.run([lease(2)])
    await fact(lambda: len(house.ended) == 2)


async def test_one_that_was_not_started_takes_orders_in_silence() -> None:
    runner = House().runner
    runner.send(KeeperMessage(drain=True))
    runner.kill()
    runner.ping()
    assert (runner.pid, runner.kill_strays(), runner.is_stopped) == (None, 0, False)
    await runner.stop()
    runner.declared.cancel()


@pytest.mark.parametrize(
    ("death", "how"),
    [
        (Death(0), "ended with status 0"),
        (Death(3), "ended with status 3"),
        (Death(-signal.SIGSEGV), "killed by SIGSEGV"),
        (Death(-signal.SIGKILL, "was deaf"), "killed, because it was deaf,"),
    ],
)
def test_how_it_died_is_a_sentence_for_people(death: Death, how: str) -> None:
    assert death.how == how


async def test_an_app_that_is_not_there_is_a_death_with_a_status() -> None:
    house = House()
    house.runner._duty = msgspec.structs.replace(house.runner._duty, target="tests.nowhere:app")
    async with asyncio.timeout(60):
        await house.runner.start(house.spares)
        assert (await house.death).status > 0
    assert not house.runner.declared.done(), "whoever listens says why"
    house.runner.declared.cancel()
    await house.spares.stop()
