"""Reports that the platform will not take, or that are heavy: nobody else pays for them."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw
from tests.worker.platform import Platform, job_id, journal_lines, lease, said_of, until, working

from fairway.core.ids import Epoch
from fairway.wire import exchange as wire
from fairway.worker.exchange import reporting
from fairway.worker.exchange.journal import HEAVY_SUFFIX, Journal

MB = 1 << 20
POISON = job_id(3)


@pytest.fixture
async def platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Platform]:
    monkeypatch.setenv("ACCEPTANCE_LEDGER", str(tmp_path / "ledger"))
    async with Platform().open() as opened:
        yield opened


def inherited(number: int, result: bytes) -> wire.Report:
    return wire.Report(
        n=number, job=job_id(number), tenant="acme", epoch=Epoch(1), token="0" * 32,
        kind="succeeded", ran_us=5, result=Raw(result),
    )  # fmt: skip


def refuses_the_poison(request: wire.ExchangeRequest) -> int:
    """Until it is said in another way."""
    return 422 if any(one.job == POISON and not one.failure for one in request.reports) else 200


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_only_the_report_that_is_refused_is_given_up(platform: Platform, status: int) -> None:
    platform.judge = lambda request: status if refuses_the_poison(request) == 422 else 200
    platform.leases = [lease(n) for n in range(1, 7)] + [lease(7, payload={"seconds": 600})]
    async with working(platform) as life:
        await until(lambda: len(platform.heard) == 6, life, "all reports are heard")
        assert not life.done()
    poison = platform.heard.pop(POISON)
    assert {one.kind for one in platform.heard.values()} == {"succeeded"}
    assert (poison.kind, poison.failure) == ("failed", "permanent")
    assert said_of(poison)["type"] == "ReportRefused"
    assert "succeeded" in said_of(poison)["message"]
    assert "This is not to be taken." in said_of(poison)["message"]


async def test_a_report_that_is_refused_in_every_form_is_dropped(
    platform: Platform, tmp_path: Path
) -> None:
    def judge(request: wire.ExchangeRequest) -> int:
        named = request.running if request.reports else None
        said = {one.job for one in request.reports} | {one.job for one in named or []}
        return 422 if POISON in said else 200

    platform.judge = judge
    platform.leases = [lease(n, "work", "medium") for n in range(1, 5)]
    folder = tmp_path / "journal"
    async with working(platform, journal=folder) as life:
        await until(lambda: len(platform.heard) == 3, life, "the others are heard")
        await until(lambda: journal_lines(folder) <= 0, life, "nothing is left to say")
        platform.leases = [lease(9)]
        await until(lambda: job_id(9) in platform.heard, life, "it works on")
    assert POISON not in platform.heard


async def test_the_next_life_is_not_ended_by_what_the_last_one_left(
    platform: Platform, tmp_path: Path
) -> None:
    folder = tmp_path / "journal"
    last = Journal(folder, "last", [platform.url])
    last.note([inherited(n, b'"kept"') for n in range(1, 6)])
    os.close(last._file)
    platform.judge = refuses_the_poison
    async with working(platform, journal=folder) as life:
        await until(lambda: len(platform.heard) == 5, life, "all outcomes are heard")
        await until(lambda: journal_lines(folder) == 0, life, "nothing is left to say")
    assert platform.heard[POISON].failure == "permanent"
    assert {one.kind for job, one in platform.heard.items() if job != POISON} == {"succeeded"}


async def test_a_hello_with_inherited_reports_names_what_runs(
    platform: Platform, tmp_path: Path
) -> None:
    """They do not fit into the first hello. Those that follow must not ask for known leases."""
    folder = tmp_path / "journal"
    last = Journal(folder, "last", [platform.url])
    last.note([inherited(n, b'"%s"' % (b"x" * 200_000)) for n in range(1, 4)])
    os.close(last._file)
    platform.leases = [lease(7, payload={"seconds": 600})]
    async with working(platform, journal=folder) as life:
        await until(lambda: len(platform.heard) == 3, life, "all outcomes are heard")
    first, *others = [call for call in platform.calls if call.hello is not None]
    assert first.reports
    assert any(call.reports for call in others)
    assert all(job_id(7) in {one.job for one in call.running or []} for call in others)


async def test_nothing_is_given_up_where_everything_is_refused(platform: Platform) -> None:
    """As by a balancer that is set up wrongly for a moment."""
    refused = 0

    def judge(request: wire.ExchangeRequest) -> int:
        nonlocal refused
        refused += bool(request.reports) or refused > 0
        return 400 if 0 < refused < 12 else 200

    platform.judge = judge
    platform.leases = [lease(n) for n in range(1, 4)] + [lease(7, payload={"seconds": 600})]
    async with working(platform) as life:
        await until(lambda: len(platform.heard) == 3, life, "all reports are heard")
    assert {one.kind for one in platform.heard.values()} == {"succeeded"}


async def test_a_report_that_breaks_the_server_does_not_hold_up_others(platform: Platform) -> None:
    platform.judge = lambda request: 500 if refuses_the_poison(request) == 422 else 200
    platform.leases = [lease(n) for n in range(1, 7)]
    async with working(platform) as life:
        await until(lambda: len(platform.heard) == 5, life, "the others are heard")
        platform.leases = [lease(9)]
        await until(lambda: job_id(9) in platform.heard, life, "it works on")
        platform.judge = lambda request: 200
        await until(lambda: POISON in platform.heard, life, "the server was mended")
    assert platform.heard[POISON].kind == "succeeded"


async def test_a_refused_key_ends_the_worker(platform: Platform) -> None:
    platform.judge = lambda request: 403
    async with working(platform) as life:
        with pytest.raises(Exception, match="not to be taken"):
            await life


async def test_a_worker_of_a_suspended_tenant_keeps_trying(platform: Platform) -> None:
    """The suspension ends one day, and nobody starts the worker for it."""
    platform.codes[403] = "TENANT_SUSPENDED"
    platform.judge = lambda request: 403 if len(platform.calls) < 4 else 200
    platform.leases = [lease(1)]
    async with working(platform) as life:
        await until(lambda: job_id(1) in platform.heard, life, "it works when it may")


async def test_heavy_reports_travel_in_bounded_calls_of_their_own(platform: Platform) -> None:
    """Six results of 6 MB, said at the same moment, and a small one."""
    platform.leases = [lease(n, "echo", "medium", {"text": "x" * 6 * MB}) for n in range(1, 7)]
    platform.leases.append(lease(7))
    async with working(platform) as life:
        await until(lambda: len(platform.heard) == 7, life, "all reports are heard")
    sizes = [sum(len(bytes(one.result)) for one in call.reports) for call in platform.calls]
    assert max(sizes) < 9 * MB
    heavy = [call for call, size in zip(platform.calls, sizes, strict=True) if size > MB]
    assert all(call.hello is None and call.wait_ms == 0 for call in heavy)
    assert {one.kind for one in platform.heard.values()} == {"succeeded"}


def weight(request: wire.ExchangeRequest) -> int:
    return sum(len(bytes(one.result)) for one in request.reports)


def refused(platform: Platform) -> int:
    return sum(weight(call) > 64 << 10 for call in platform.calls)


def greetings(platform: Platform) -> int:
    return sum(call.hello is not None for call in platform.calls)


async def test_a_call_without_room_is_said_again_and_the_rest_goes_on(platform: Platform) -> None:
    """503 `NO_ROOM` for all that is large: nothing is given up, and nobody else waits for it."""
    platform.judge = lambda request: 503 if weight(request) > 64 << 10 else 200
    sizes = {1: 100 << 10, 2: 6 * MB, 3: 6 * MB}  # the first one travels with a heartbeat
    wanted = [lease(n, "echo", "medium", {"text": "x" * size}) for n, size in sizes.items()]
    platform.leases = wanted[:1]
    async with working(platform) as life:
        await until(lambda: refused(platform) >= 1, life, "the first one finds no room")
        platform.leases = wanted[1:]
        await until(lambda: refused(platform) >= 4, life, "they are said again")
        hellos = greetings(platform)
        platform.leases = [lease(n) for n in range(4, 9)]
        await until(lambda: len(platform.heard) == 5, life, "small reports are heard meanwhile")
        await until(lambda: refused(platform) >= 6, life, "they are said again and again")
        assert greetings(platform) == hellos, "that is no reason to say hello"
        assert not life.done()
        platform.judge = lambda request: 200
        await until(lambda: len(platform.heard) == 8, life, "all reports are heard")
    assert {one.kind for one in platform.heard.values()} == {"succeeded"}
    assert all(len(bytes(platform.heard[job_id(n)].result)) > size for n, size in sizes.items())


async def test_with_many_reports_that_nobody_hears_no_more_work_is_taken(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is named in a hello, and a hello has its bound."""
    monkeypatch.setattr(reporting, "UNHEARD_MAX", 3)
    platform.takes = lambda report: False
    platform.leases = [lease(n) for n in range(1, 4)]
    async with working(platform) as life:
        await until(lambda: any(one.draining for one in platform.calls), life, "it takes no more")
        platform.leases = [lease(9)]
        platform.takes = lambda report: True
        verdicts = iter([503])  # so it says hello, and all that nobody heard
        platform.judge = lambda request: next(verdicts, 200)
        await until(lambda: job_id(9) in platform.heard, life, "it goes on when it was heard")


async def test_a_slow_disk_holds_up_a_heavy_report_and_nobody_else(
    platform: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is said is in the journal before, and small jobs do not wait for the writing of it."""
    written, write = threading.Event(), os.write

    def slow(file: int, part: Any) -> int:
        if len(part) > MB:
            written.wait(60)
        return write(file, part)

    monkeypatch.setattr(os, "write", slow)
    folder = tmp_path / "journal"
    platform.leases = [lease(1, "echo", "medium", {"text": "x" * 6 * MB})]
    async with working(platform, journal=folder) as life:
        await until(lambda: len(platform.calls) > 2, life, "it is at work")
        platform.leases = [lease(n, "nap", "medium") for n in range(2, 7)]
        await until(lambda: len(platform.heard) == 5, life, "the others are heard")
        assert not any(weight(call) > MB for call in platform.calls)
        platform.takes = lambda report: report.job != job_id(1)
        written.set()
        await until(lambda: any(weight(call) > MB for call in platform.calls), life, "it is said")
        (kept,) = folder.glob(f"*{HEAVY_SUFFIX}")
        assert kept.stat().st_size > 6 * MB
