"""A worker whose processes cannot be started, do not answer, or leave others behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs
from tests.acceptance.processes import name_of, tree
from tests.worker.platform import Platform, job_id, lease, said_of, until, working

from fairway.core.errors import Unavailable
from fairway.wire import exchange as wire
from fairway.worker.pipe import pings
from fairway.worker.runners import isolated, start_failures, suspects

ODD = {"target": "tests.worker.odd_jobs:app", "slots": {"short": 8, "medium": 8, "long": 2}}
NOBODY = "/nowhere/python"


@pytest.fixture(autouse=True)
def no_spares() -> None:
    """Here they are, and are killed with the runners."""


@pytest.fixture
async def platform(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Platform]:
    monkeypatch.setattr(pings, "QUIET_LOOKS", 1)
    monkeypatch.setattr(pings, "DEAF_LOOKS", 3)
    monkeypatch.setattr(isolated, "STOPPED_LOOKS_MAX", 8)
    async with Platform().open() as opened:
        yield opened


def result_of(platform: Platform, number: int) -> object:
    return msgspec.json.decode(platform.heard[job_id(number)].result)


def has_begun(platform: Platform, number: int) -> bool:
    said = [one for call in platform.calls for one in call.running or []]
    return any(one.job == job_id(number) and bytes(one.progress) != b"null" for one in said)


def runners() -> list[int]:
    return [pid for pid in tree(os.getpid()) if name_of(pid) == "fairway-runner"]


# -- no process to be had ------------------------------------------------------------------------


async def test_a_start_that_failed_is_tried_again(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a while no process can be started, and the runner and its spares are gone."""
    platform.leases = [lease(1)]
    with capture_logs() as lines:

        def failures(event: str) -> int:
            return sum(line["event"] == event for line in lines)

        async with working(platform, **ODD) as life:
            await until(lambda: job_id(1) in platform.heard, life, "the runner works")
            monkeypatch.setattr(sys, "executable", NOBODY)
            _kill_all()
            # Else a lease may reach the dead runner before its keeper knows, and is lost with it.
            await until(lambda: failures("no runner yet") > 0, life, "the runner is missed")
            platform.leases = [lease(2), lease(3, "lone", "long")]
            tried = failures("no runner yet") + 1
            await until(lambda: not platform.leases, life, "it has leases that nothing can run")
            await until(lambda: failures("no runner yet") > tried, life, "it was tried again")
            await until(lambda: failures("no process for a job yet") > 1, life, "so was the other")
            assert set(platform.heard) == {job_id(1)}
            monkeypatch.undo()
            await until(lambda: len(platform.heard) == 3, life, "they ran")
    assert {one.kind for one in platform.heard.values()} == {"succeeded"}


async def test_a_job_that_gets_no_process_goes_back(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolated, "HAND_BACK_SECONDS", 0.5)
    async with working(platform, **ODD) as life:
        await until(lambda: bool(platform.calls), life, "it says hello")
        monkeypatch.setattr(sys, "executable", NOBODY)
        killed = _kill_all(but=runners())
        await until(lambda: not any(map(_is_there, killed)), life, "their deaths are known")
        platform.leases = [lease(1, "lone", "long"), lease(2)]
        await until(lambda: len(platform.heard) == 2, life, "both are heard of")
    kinds = {job: one.kind for job, one in platform.heard.items()}
    assert kinds == {job_id(1): "returned", job_id(2): "succeeded"}


async def test_a_worker_that_can_run_nothing_hands_back_and_ends(
    platform: Platform, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(start_failures, "HOPELESS_SECONDS", 1.0)
    async with working(platform, **ODD) as life:
        await until(lambda: bool(platform.calls), life, "it says hello")
        monkeypatch.setattr(sys, "executable", NOBODY)
        _kill_all()
        await until(lambda: "no runner yet" in capsys.readouterr().out, life, "their deaths")
        platform.leases = [lease(1), lease(2)]
        async with asyncio.timeout(60):
            with pytest.raises(Unavailable, match="No runner"):
                await life
    assert {one.kind for one in platform.heard.values()} == {"returned"}
    assert platform.calls[-1].goodbye


def _kill_all(but: Sequence[int] = ()) -> list[int]:
    """Runners and spares, also one that has not got its name yet; the keeper is this process."""
    killed = []
    for pid in tree(os.getpid()):
        if pid not in but and _is_ours(pid) and name_of(pid) != "fairway-reaper":
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
    return killed


def _is_there(pid: int) -> bool:
    """Also as a zombie: whose parent has not heard of its death yet."""
    return os.path.exists(f"/proc/{pid}")


def _is_ours(pid: int) -> bool:
    try:
        return b"fairway.worker.runner" in Path("/proc", str(pid), "cmdline").read_bytes()
    except OSError:
        return False


# -- no answer -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "pool"), [("nap", "short"), ("lone", "long")])
async def test_a_frozen_runner_loses_its_jobs(platform: Platform, kind: str, pool: str) -> None:
    """They have no time limit; the keeper still beats. Meanwhile it takes nothing new."""
    platform.leases = [lease(1, kind, pool, {"seconds": 600})]
    async with working(platform, **ODD) as life:
        await until(lambda: has_begun(platform, 1), life, "it runs")
        os.kill(runners()[-1], signal.SIGSTOP)
        if kind == "nap":
            await until(lambda: platform.calls[-1].draining, life, "it says that it is full")
        await until(lambda: job_id(1) in platform.heard, life, "the job is lost")
        platform.leases = [lease(2)]
        await until(lambda: job_id(2) in platform.heard, life, "another runner works")
    lost = platform.heard[job_id(1)]
    assert (lost.kind, lost.failure) == ("failed", "worker_crash")
    assert "killed, because it" in said_of(lost)["message"]
    assert platform.heard[job_id(2)].kind == "succeeded"


async def test_a_handler_that_blocks_the_loop_is_not_deaf(platform: Platform) -> None:
    platform.leases = [lease(1, "blocking", "short", {"seconds": 6})]
    async with working(platform, **ODD) as life:
        await until(lambda: job_id(1) in platform.heard, life, "it ended")
        assert not any(call.draining for call in platform.calls)
    assert platform.heard[job_id(1)].kind == "succeeded"


@pytest.mark.slow
async def test_a_runner_that_is_stuck_with_the_lock_is_killed(platform: Platform) -> None:
    platform.leases = [lease(1, "hold", "medium", {"seconds": 300}), lease(2)]
    async with working(platform, **ODD) as life:
        await until(lambda: job_id(1) in platform.heard, life, "the job is lost")
    assert platform.heard[job_id(1)].failure == "worker_crash"


# -- what jobs leave behind ----------------------------------------------------------------------


async def test_orphans_are_reaped_and_nobody_loses_a_status(platform: Platform) -> None:
    """Fifty grandchildren that outlive their parent; a child that is waited for late."""
    platform.leases = [lease(n, "orphans", "medium", {"count": 10}) for n in range(1, 6)]
    platform.leases.append(lease(6, "status", "medium", {"seconds": 2}))
    async with working(platform, **ODD) as life:
        await until(lambda: len(platform.heard) == 6, life, "all have ended")
        await until(lambda: not zombies(), life, "no zombies are left")
        assert runners(), "the same runner goes on"
    assert [result_of(platform, n) for n in range(1, 6)] == [[0] * 10] * 5
    assert result_of(platform, 6) == 7


def zombies() -> list[int]:
    """Beneath the worker's processes: a child of our own may be what another test has left."""
    states = {pid: _state_and_parent(pid) for pid in tree(os.getpid())}
    return [
        pid for pid, (state, parent) in states.items() if state == "Z" and parent != os.getpid()
    ]


def _state_and_parent(pid: int) -> tuple[str, int]:
    try:
        text = Path("/proc", str(pid), "stat").read_text(errors="replace")
    except OSError:
        return "", 0
    state, parent = text.rpartition(")")[2].split()[:2]
    return state, int(parent)


async def test_a_job_that_kills_its_runner_is_told_by_which_signal(platform: Platform) -> None:
    platform.leases = [lease(1, "nap", "short", {"seconds": 600})]
    async with working(platform, **ODD) as life:
        await until(lambda: has_begun(platform, 1), life, "it runs")
        os.kill(runners()[0], signal.SIGSEGV)
        await until(lambda: job_id(1) in platform.heard, life, "the job is lost")
    assert "SIGSEGV" in said_of(platform.heard[job_id(1)])["message"]


async def test_a_suspect_that_waits_for_long_goes_back(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has not begun while others run apart, and its time limit counts at the platform."""
    monkeypatch.setattr(suspects, "SUSPECTS_MAX", 1)
    monkeypatch.setattr(suspects, "HAND_BACK_SECONDS", 0.5)
    platform.leases = [suspect(1, seconds=600), suspect(2)]
    async with working(platform, **ODD) as life:
        await until(lambda: has_begun(platform, 1), life, "the first runs")
        await until(lambda: job_id(2) in platform.heard, life, "the other is heard of")
        assert job_id(1) not in platform.heard
    assert platform.heard[job_id(2)].kind == "returned"


async def test_one_that_is_blamed_runs_apart_also_after_it_was_handed_back(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suspects, "SUSPECTS_MAX", 1)
    monkeypatch.setattr(suspects, "HAND_BACK_SECONDS", 0.5)
    platform.leases = [lease(1, payload={"seconds": 600})]
    async with working(platform, **ODD) as life:
        await until(lambda: has_begun(platform, 1), life, "it runs")
        os.kill(runners()[0], signal.SIGSEGV)
        await until(lambda: job_id(1) in platform.heard, life, "it is lost, and blamed")
        platform.leases = [suspect(2, seconds=600)]
        await until(lambda: has_begun(platform, 2), life, "another has the one turn")
        for epoch in (2, 3):
            del platform.heard[job_id(1)]
            platform.leases = [msgspec.structs.replace(lease(1), epoch=epoch)]
            await until(lambda: job_id(1) in platform.heard, life, "it comes again")
            assert platform.heard[job_id(1)].kind == "returned"


def suspect(number: int, seconds: float = 0.0) -> wire.Lease:
    """Its job was lost with a runner twice."""
    return msgspec.structs.replace(lease(number, payload={"seconds": seconds}), delivery=3)
