"""A runner's own process, spoken to over its pipe as a keeper does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest
from msgspec.structs import replace
from tests.worker.platform import fact, job_id, lease

from fairway.wire.exchange import Report
from fairway.worker.pipe.pipe import (
    KeeperMessage,
    Pipe,
    PipeHandlers,
    RunLease,
    RunnerMessage,
    RunnerSetup,
)
from fairway.worker.runners.spares import SpareProcess


class Keeper:
    """One end of a pipe, and all that came through it."""

    def __init__(self, blank: SpareProcess) -> None:
        self.blank = blank
        self.words: list[RunnerMessage] = []
        self.garbage: list[Exception] = []
        self._pipe: Pipe[RunnerMessage] | None = None

    async def join(self, target: str = "tests.worker.odd_jobs:app") -> None:
        hearing = PipeHandlers(
            self.words.append, lambda: None, lambda _, why: self.garbage.append(why)
        )
        self._pipe = await Pipe.join(self.blank.end, RunnerMessage, hearing)
        self._pipe.send(RunnerSetup(target=target, threads=2))

    def say(self, **orders: object) -> None:
        assert self._pipe is not None
        # whatever a keeper may say
        self._pipe.send(KeeperMessage(**orders))  # type: ignore[arg-type]

    def run(self, *leases: object) -> None:
        self.say(leases=cast(list[RunLease], list(leases)))

    @property
    def ended(self) -> dict[str, Report]:
        return {one.job: one for words in self.words for one in words.ended}

    def has_begun(self, number: int) -> bool:
        said = [one.job for words in self.words for one in words.progress]
        return job_id(number) in said


@pytest.fixture
async def keeper() -> AsyncIterator[Keeper]:
    blank = await SpareProcess.start()
    made = Keeper(blank)
    await made.join()
    await fact(lambda: bool(made.words))
    yield made
    assert made.garbage == []
    await blank.finish()


async def test_its_first_word_is_what_its_app_declares(keeper: Keeper) -> None:
    first = keeper.words[0]
    assert first.pid not in (0, keeper.blank.process.pid), "the reaper stands above it"
    assert "nap" in {one.name for one in first.declared or []}


async def test_a_lease_that_comes_again_is_run_once_and_a_newer_one_replaces_it(
    keeper: Keeper,
) -> None:
    nap = lease(1, payload={"seconds": 600})
    keeper.run(nap, nap)
    await fact(lambda: keeper.has_begun(1))
    keeper.run(nap, replace(lease(1), epoch=2))
    await fact(lambda: job_id(1) in keeper.ended)
    assert (keeper.ended[job_id(1)].epoch, keeper.ended[job_id(1)].kind) == (2, "succeeded")
    assert sum(len(words.ended) for words in keeper.words) == 1, "nobody waits for the old one"


async def test_one_that_is_asked_to_stop_says_so_and_one_given_up_does_not(keeper: Keeper) -> None:
    keeper.run(*(lease(n, payload={"seconds": 600}) for n in (1, 2)))
    await fact(lambda: keeper.has_begun(1) and keeper.has_begun(2))
    keeper.say(give_up=[job_id(2)])
    keeper.say(cancel=[job_id(1), job_id(99)])
    await fact(lambda: job_id(1) in keeper.ended)
    assert keeper.ended[job_id(1)].kind == "cancelled"
    assert job_id(2) not in keeper.ended


async def test_one_that_is_overdue_ends_as_that(keeper: Keeper) -> None:
    keeper.run(lease(1, payload={"seconds": 600}))
    await fact(lambda: keeper.has_begun(1))
    keeper.say(overdue=[job_id(1), job_id(99)])
    await fact(lambda: job_id(1) in keeper.ended)
    assert keeper.ended[job_id(1)].failure == "timeout"


async def test_a_run_past_its_own_limit_says_so_itself(keeper: Keeper) -> None:
    keeper.run(lease(1, payload={"seconds": 600}, timeout_ms=20))
    await fact(lambda: job_id(1) in keeper.ended)
    assert keeper.ended[job_id(1)].failure == "timeout"


async def test_a_type_that_it_does_not_know_fails_alone(keeper: Keeper) -> None:
    keeper.run(lease(1, "nobody"), lease(2))
    await fact(lambda: len(keeper.ended) == 2)
    kinds = {job: one.kind for job, one in keeper.ended.items()}
    assert kinds == {job_id(1): "failed", job_id(2): "succeeded"}


async def test_it_ends_when_its_keeper_is_gone(keeper: Keeper) -> None:
    keeper.run(lease(1, payload={"seconds": 600}))
    await fact(lambda: keeper.has_begun(1))
    assert keeper._pipe is not None
    keeper._pipe.close()
    async with asyncio.timeout(30):
        assert await keeper.blank.process.wait() == 0


async def test_an_app_that_cannot_be_loaded_is_a_status_not_a_word() -> None:
    blank = await SpareProcess.start()
    keeper = Keeper(blank)
    await keeper.join("tests.worker.nowhere:app")
    async with asyncio.timeout(30):
        assert await blank.process.wait() > 0
    assert keeper.words == []
    blank.close()
