"""Jobs that may have killed their runner: who is blamed, who waits, who goes back."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace
from tests.worker.platform import ignore, job_id, lease

from fairway.core.run.outcome import Outcome
from fairway.core.run.process_limits import RunLimits
from fairway.wire.exchange import Lease
from fairway.worker.limits.enforcement_level import EnforcementLevel
from fairway.worker.pipe.pipe import Declared, RunnerMessage
from fairway.worker.runners import suspects
from fairway.worker.runners.isolated import IsolatedRuns
from fairway.worker.runners.runner_process import RunnerProcess
from fairway.worker.runners.suspects import SHARED_DELIVERIES, SUSPECTS_MAX, Suspects

NAP = Declared(name="nap", mode="loop")


async def _never(runner: RunnerProcess) -> list[Declared]:
    raise AssertionError("nobody begins here")


class House:
    """Suspects whose turns are all taken: whoever waits here never begins."""

    def __init__(self) -> None:
        self.ends: list[tuple[Lease, Outcome]] = []
        levels, heard = EnforcementLevel.find(None), list[RunnerMessage]()
        isolated = IsolatedRuns(
            "nobody:app", levels, RunLimits(), heard.append, self._end,
            ready=_never, cannot_start=ignore,
        )  # fmt: skip
        self.suspects = Suspects(isolated, self._end)

    def _end(self, lease: Lease, end: Outcome) -> None:
        self.ends.append((lease, end))


@pytest.fixture
async def house(monkeypatch: pytest.MonkeyPatch) -> House:
    made = House()
    for _ in range(SUSPECTS_MAX):
        await made.suspects._turns.acquire()
    return made


async def test_a_job_lost_often_enough_runs_apart_whatever_it_was_lost_with(house: House) -> None:
    delivered = [replace(lease(1), delivery=n) for n in range(1, SHARED_DELIVERIES + 3)]
    assert [one in house.suspects for one in delivered] == [False, False, True, True]


async def test_few_that_were_lost_together_are_blamed_and_many_are_not(house: House) -> None:
    few = [lease(n) for n in range(SUSPECTS_MAX)]
    house.suspects.lost([*few, lease(99)])
    assert not house.suspects.has_blamed, "any of so many may be innocent"
    house.suspects.lost(few)
    assert all(one in house.suspects for one in few)
    assert lease(99) not in house.suspects
    house.suspects.lost([lease(99)])
    assert [one for one in [*few, lease(99)] if one in house.suspects] == [lease(99)]


async def test_one_that_waits_can_be_taken_out_and_is_blamed_no_more(house: House) -> None:
    house.suspects.lost([lease(1)])
    waiting = asyncio.create_task(house.suspects.run(lease(1), NAP))
    await asyncio.sleep(0)
    assert list(house.suspects) == [job_id(1)]
    assert house.suspects.take_out(job_id(1)) == lease(1)
    assert house.suspects.take_out(job_id(1)) is None
    assert lease(1) not in house.suspects
    house.suspects._turns.release()
    await waiting
    assert house.ends == [], "whoever took it out has it"


async def test_one_that_waits_for_too_long_goes_back_and_stays_suspect(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suspects, "HAND_BACK_SECONDS", 0.01)
    house.suspects.lost([lease(1)])
    await house.suspects.run(lease(1), NAP)
    assert [(one.job, end.kind) for one, end in house.ends] == [(job_id(1), "returned")]
    assert list(house.suspects) == []
    assert lease(1) in house.suspects


async def test_a_newer_lease_of_a_job_that_waits_is_not_handed_back_with_the_old(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = replace(lease(1), epoch=2)
    monkeypatch.setattr(suspects, "HAND_BACK_SECONDS", 0.01)
    first = asyncio.create_task(house.suspects.run(lease(1), NAP))
    await asyncio.sleep(0)  # its time is running
    monkeypatch.setattr(suspects, "HAND_BACK_SECONDS", 600.0)
    second = asyncio.create_task(house.suspects.run(newer, NAP))
    await first
    assert (house.ends, list(house.suspects)) == ([], [newer.job])
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
