"""The outcome journal: what was not acknowledged survives its worker, and only that."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest
from msgspec import Raw, structs
from tests.worker.platform import ended, ignore

from fairway.core.ids import Epoch
from fairway.wire.exchange import Lease, Report
from fairway.worker.exchange import journal as journals
from fairway.worker.exchange.journal import SUFFIX, Journal, read
from fairway.worker.exchange.journaled_ledger import JournaledLedger
from fairway.worker.exchange.large_results import LIGHT_BYTES
from fairway.worker.exchange.lease_ledger import LeaseLedger

URLS = ["http://one:8700", "http://two:8700"]


def report(number: int, job: str = "job") -> Report:
    return Report(
        n=number, job=f"{job}-{number}", tenant="acme", epoch=Epoch(7), token="0" * 32,
        kind="succeeded", ran_us=5, result=Raw(b'{"a":[1]}'),
    )  # fmt: skip


def lease(job: str, pool: str) -> Lease:
    return Lease(
        job=job, epoch=Epoch(7), token="0" * 32, type="t", pool=pool, tenant="acme", attempt=1,
        delivery=1, payload=Raw(b"{}"),
    )  # fmt: skip


def dead(journal: Journal) -> None:
    """As if its process were killed: nothing is tidied up, the lock is gone."""
    os.close(journal._file)


def inherited(journal: Journal) -> list[Report]:
    """What it takes over, noted and then forgotten where it was."""
    found: list[Report] = []
    for left in journal.inherit():
        journal.note(left.reports)
        found += left.reports
        left.forget()
    return found


def large(number: int) -> Report:
    return structs.replace(report(number), result=Raw(b'"%s"' % (b"x" * LIGHT_BYTES)))


def test_its_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    Journal(tmp_path / "journal", "one", URLS).close()
    assert stat.S_IMODE((tmp_path / "journal").stat().st_mode) == 0o700


def test_the_next_life_says_what_the_last_one_could_not(tmp_path: Path) -> None:
    first = Journal(tmp_path, "one", URLS)
    first.note([report(1), report(2), report(3)])
    first.heard([2])
    dead(first)
    second = Journal(tmp_path, "two", URLS[1:])
    left = inherited(second)
    assert [one.job for one in left] == ["job-1", "job-3"]
    assert bytes(left[0].result) == b'{"a":[1]}'
    assert inherited(second) == [], "taken over once"


def test_a_large_result_has_a_file_of_its_own(tmp_path: Path) -> None:
    first = Journal(tmp_path, "one", URLS)
    first.note([report(1), report(3)])
    for number in (2, 4):
        asyncio.run(first.note_beside(large(number)))
    first.heard([4])
    dead(first)
    second = Journal(tmp_path, "two", URLS)
    assert inherited(second) == [report(1), report(3), large(2)]
    assert (tmp_path / f"one{SUFFIX}").exists() is False
    assert len(list(tmp_path.iterdir())) == 2, "its own file, and the large result"
    second.heard([1, 2, 3])
    second.close()
    assert list(tmp_path.iterdir()) == []


def test_what_was_taken_over_stays_until_it_stands_elsewhere(tmp_path: Path) -> None:
    first = Journal(tmp_path, "one", URLS)
    first.note([report(1), large(2)])
    dead(first)
    for left in Journal(tmp_path, "two", URLS).inherit():
        os.close(left.file)  # killed in the middle of it
    assert [one.n for one in inherited(Journal(tmp_path, "three", URLS))] == [1, 2]


def test_a_journal_that_cannot_be_read_is_left_and_the_others_taken(tmp_path: Path) -> None:
    (tmp_path / f"a{SUFFIX}").mkdir()
    first = Journal(tmp_path, "one", URLS)
    first.note([report(1)])
    dead(first)
    assert len(inherited(Journal(tmp_path, "two", URLS))) == 1


def test_a_line_that_the_disk_took_a_part_of_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, writev = Journal(tmp_path, "one", URLS), os.writev
    monkeypatch.setattr(os, "writev", lambda file, parts: os.write(file, parts[0][:20]))
    first.note([report(1)])
    monkeypatch.setattr(os, "writev", writev)
    first.note([report(2)])
    dead(first)
    assert [one.n for one in inherited(Journal(tmp_path, "two", URLS))] == [2]


def test_a_disk_that_is_read_only_now_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: int, size: int) -> None:
        raise OSError(30, "Read-only file system")

    journal = Journal(tmp_path, "one", URLS)
    journal.note([report(1)])
    monkeypatch.setattr(os, "ftruncate", refuse)
    journal.heard([1])
    journal.note([report(2)])


def test_the_file_stays_small_though_something_is_always_pending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "COMPACT_BYTES", 4000)
    journal = Journal(tmp_path, "one", URLS)
    for number in range(1, 500):
        journal.note([report(number)])
        journal.heard([number - 1])
        assert (tmp_path / f"one{SUFFIX}").stat().st_size < 5000
    dead(journal)
    assert [one.n for one in inherited(Journal(tmp_path, "two", URLS))] == [499]


def test_a_life_that_goes_on_is_left_alone(tmp_path: Path) -> None:
    first = Journal(tmp_path, "one", URLS)
    first.note([report(1)])
    assert inherited(Journal(tmp_path, "two", URLS)) == []
    assert [one.job for one in read(tmp_path / f"one{SUFFIX}")[1]] == ["job-1"]


def test_outcomes_of_another_platform_are_left_where_they_are(tmp_path: Path) -> None:
    first = Journal(tmp_path, "one", ["http://elsewhere"])
    first.note([report(1)])
    dead(first)
    assert inherited(Journal(tmp_path, "two", URLS)) == []
    assert inherited(Journal(tmp_path, "three", ["http://elsewhere"])) != []


def test_a_line_that_was_torn_by_the_crash_never_happened(tmp_path: Path) -> None:
    first = Journal(tmp_path, "one", URLS)
    first.note([report(1)])
    with (tmp_path / f"one{SUFFIX}").open("ab") as file:
        file.write(b'{"n":2,"job":"job-2","ten')
    dead(first)
    assert [one.job for one in inherited(Journal(tmp_path, "two", URLS))] == ["job-1"]


def test_the_file_stays_small(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "one", URLS)
    empty = (tmp_path / f"one{SUFFIX}").stat().st_size
    for number in range(100):
        journal.note([report(number)])
        journal.heard([number])
    assert (tmp_path / f"one{SUFFIX}").stat().st_size == empty
    journal.close()
    assert list(tmp_path.iterdir()) == [], "a clean end leaves nothing behind"


def test_an_end_with_something_left_to_say_leaves_the_file(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "one", URLS)
    journal.note([report(1)])
    journal.close()
    assert len(inherited(Journal(tmp_path, "two", URLS))) == 1


@pytest.mark.parametrize(("pool", "noted"), [("short", 0), ("medium", 1), ("long", 1)])
def test_only_jobs_that_are_worth_it_are_noted(pool: str, noted: int) -> None:
    ledger = LeaseLedger(("medium", "long"), on_failure=ignore)
    ledger.received([lease("a", pool)])
    ledger.ended(ended("a", epoch=7))
    assert len(ledger.take_for_journal()) == noted
    assert ledger.take_for_journal() == []


def test_inherited_reports_get_numbers_of_this_life_and_are_said_with_hello() -> None:
    ledger = LeaseLedger(on_failure=ignore)
    ledger.received([lease("mine", "long")])
    ledger.ended(ended("mine", epoch=7))
    (left,) = ledger.inherit([report(1, "theirs")])
    assert left.n == 2
    reports = ledger.take_unheard()
    assert {one.job for one in ledger.everything(reports)} == {"mine", "theirs-1"}
    assert [one.n for one in reports] == [1, 2]
    ledger.heard([2])
    assert [one.job for one in ledger.take_unheard()] == ["mine"]


def test_a_lease_of_an_earlier_life_is_named_only_beside_its_report() -> None:
    """To the platform it is another session's until the report proves the right to it."""
    ledger = LeaseLedger(on_failure=ignore)
    mine = [lease("a", "long"), lease("b", "long")]
    ledger.received(mine)
    ledger.ended(ended("a", epoch=7))
    (left,) = ledger.inherit([report(1, "theirs")])
    assert {one.job for one in ledger.everything([])} == {"a", "b"}
    assert {one.job for one in ledger.everything([left])} == {"a", "b", "theirs-1"}
    ledger.leave_unnamed([left])
    assert {one.job for one in ledger.everything([left])} == {"a", "b"}


def test_the_last_progress_of_a_run_goes_out_before_its_end() -> None:
    ledger = LeaseLedger(on_failure=ignore)
    ledger.received([lease("a", "long")])
    ledger.progressed("a", Raw(b'{"done":3}'))
    ledger.ended(ended("a", "cancelled", epoch=7))
    (said,) = ledger.take_progress() or []
    assert (said.job, bytes(said.progress)) == ("a", b'{"done":3}')
    assert ledger.take_progress() is None


def test_what_was_heard_before_it_was_journaled_is_not_kept(tmp_path: Path) -> None:
    """Else it is pending for ever, and the file never begins anew."""
    books = JournaledLedger(tmp_path, "one", URLS, {"medium"})
    empty = (tmp_path / f"one{SUFFIX}").stat().st_size
    books.ledger.received([lease("a", "medium")])
    books.ledger.ended(ended("a", epoch=7))
    books.heard([1])
    books.note()
    assert (tmp_path / f"one{SUFFIX}").stat().st_size == empty


def test_a_full_disk_loses_nothing_of_a_file_that_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "COMPACT_BYTES", 1000)
    journal, writev = Journal(tmp_path, "one", URLS), os.writev
    journal.note([report(number) for number in range(1, 21)])
    monkeypatch.setattr(os, "writev", lambda file, parts: os.write(file, parts[0][:9]))
    journal.heard([1])
    monkeypatch.setattr(os, "writev", writev)
    dead(journal)
    left = {one.n for one in inherited(Journal(tmp_path, "two", URLS))}
    assert left >= set(range(2, 21))
