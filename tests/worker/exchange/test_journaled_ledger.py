"""LeaseLedger and journal together: what ended before the process did is said by the next one."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from msgspec import Raw
from tests.worker.platform import ended, job_id, lease

from fairway.wire.exchange import Report
from fairway.worker.exchange.journal import HEAVY_SUFFIX, Journal
from fairway.worker.exchange.journaled_ledger import JournaledLedger
from fairway.worker.exchange.large_results import LIGHT_BYTES

URLS = ["http://platform"]
SEVEN = Raw(b"7")
HEAVY = Raw(b'"%s"' % (b"x" * LIGHT_BYTES))


def books(folder: Path | None, life: str, *pools: str) -> JournaledLedger:
    return JournaledLedger(folder, life, URLS, set(pools or ("short", "medium")))


def run(book: JournaledLedger, number: int, pool: str = "medium", result: Raw = SEVEN) -> None:
    book.ledger.received([lease(number, pool=pool)])
    book.ledger.ended(ended(job_id(number), result=result))
    book.note()


def large_files(folder: Path) -> int:
    return len(list(folder.glob(f"*{HEAVY_SUFFIX}")))


def unheard(book: JournaledLedger) -> dict[str, bytes]:
    return {one.job: bytes(one.result) for one in book.ledger.all_unheard()}


async def test_the_next_life_says_what_the_last_one_could_not(tmp_path: Path) -> None:
    first = books(tmp_path, "1" * 32)
    run(first, 1)
    run(first, 2, "short")
    run(first, 3)
    first.heard([3])
    await first.close()  # as good as a death: nothing is written then
    second = books(tmp_path, "2" * 32)
    second.inherit()
    assert unheard(second) == {job_id(1): b"7"}, "short jobs are not worth a line"
    (report,) = second.ledger.all_unheard()
    second.heard([report.n])
    await second.close()
    third = books(tmp_path, "3" * 32)
    third.inherit()
    assert unheard(third) == {}, "said once, in one of its lives"
    await third.close()


async def test_what_was_inherited_survives_a_second_death(tmp_path: Path) -> None:
    first = books(tmp_path, "1" * 32)
    run(first, 1)
    await first.close()
    second = books(tmp_path, "2" * 32)
    second.inherit()
    run(second, 2)
    await second.close()
    third = books(tmp_path, "3" * 32)
    third.inherit()
    assert unheard(third).keys() == {job_id(1), job_id(2)}
    await third.close()


async def test_without_a_folder_or_a_pool_that_is_worth_it_there_is_no_journal(
    tmp_path: Path,
) -> None:
    for book in (books(None, "1" * 32), books(tmp_path, "1" * 32, "short")):
        run(book, 1)
        book.inherit()
        await book.written([1])
        book.heard([1])
        assert book.ledger.is_settled
        await book.close()
    assert os.listdir(tmp_path) == []


async def test_a_large_result_is_written_beside_the_loop_and_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_write = asyncio.Event()
    write = Journal.note_beside

    async def slowly(self: Journal, report: Report) -> None:
        await may_write.wait()
        await write(self, report)

    monkeypatch.setattr(Journal, "note_beside", slowly)
    book = books(tmp_path, "1" * 32)
    run(book, 1, result=HEAVY)
    waiting = asyncio.create_task(book.written([1]))
    await asyncio.sleep(0)
    assert not waiting.done()
    assert large_files(tmp_path) == 0
    may_write.set()
    async with asyncio.timeout(30):
        await waiting
    assert large_files(tmp_path) == 1
    book.heard([1])
    await book.close()
    assert large_files(tmp_path) == 0


async def test_what_was_heard_before_it_was_noted_is_not_written(tmp_path: Path) -> None:
    book = books(tmp_path, "1" * 32)
    book.ledger.received([lease(1, pool="medium")])
    book.ledger.ended(ended(job_id(1)))
    book.heard([1])
    book.note()
    await book.close()
    heir = books(tmp_path, "2" * 32)
    heir.inherit()
    assert unheard(heir) == {}
    await heir.close()
