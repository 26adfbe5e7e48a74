"""The outcome journal: what was not acknowledged survives its worker, and only that."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec import Raw, structs

from fairway.wire.exchange import Lease, Report
from fairway.worker.journal import SUFFIX, Journal, read
from fairway.worker.ledger import End, Ledger
from fairway.worker.pipe import LARGE_BYTES

URLS = ["http://one:8700", "http://two:8700"]


def report(number: int, job: str = "job") -> Report:
    return Report(
        n=number, job=f"{job}-{number}", tenant="acme", epoch=7, token="0" * 32, kind="succeeded",
        ran_us=5, result=Raw(b'{"a":[1]}'),
    )  # fmt: skip


def lease(job: str, pool: str) -> Lease:
    return Lease(
        job=job, epoch=7, token="0" * 32, type="t", pool=pool, tenant="acme", attempt=1,
        delivery=1, payload=Raw(b"{}"),
    )  # fmt: skip


def dead(journal: Journal) -> None:
    """As if its process were killed: nothing is tidied up, the lock is gone."""
    os.close(journal._file)


def test_the_next_life_says_what_the_last_one_could_not(tmp_path: Path) -> None:
    first = Journal(tmp_path, "one", URLS)
    first.note([report(1), report(2), report(3)])
    first.heard([2])
    dead(first)
    second = Journal(tmp_path, "two", URLS[1:])
    left = second.inherit()
    assert [one.job for one in left] == ["job-1", "job-3"]
    assert bytes(left[0].result) == b'{"a":[1]}'
    assert second.inherit() == [], "taken over once"


def test_a_large_result_stands_in_a_line_like_any_other(tmp_path: Path) -> None:
    first = Journal(tmp_path, "one", URLS)
    large = Raw(b'"' + b"x" * LARGE_BYTES + b'"')
    wanted = [report(1), structs.replace(report(2), result=large), report(3)]
    first.note(wanted)
    dead(first)
    assert Journal(tmp_path, "two", URLS).inherit() == wanted


def test_a_life_that_goes_on_is_left_alone(tmp_path: Path) -> None:
    first = Journal(tmp_path, "one", URLS)
    first.note([report(1)])
    assert Journal(tmp_path, "two", URLS).inherit() == []
    assert [one.job for one in read(tmp_path / f"one{SUFFIX}")[1]] == ["job-1"]


def test_outcomes_of_another_platform_are_left_where_they_are(tmp_path: Path) -> None:
    first = Journal(tmp_path, "one", ["http://elsewhere"])
    first.note([report(1)])
    dead(first)
    assert Journal(tmp_path, "two", URLS).inherit() == []
    assert Journal(tmp_path, "three", ["http://elsewhere"]).inherit() != []


def test_a_line_that_was_torn_by_the_crash_never_happened(tmp_path: Path) -> None:
    first = Journal(tmp_path, "one", URLS)
    first.note([report(1)])
    with (tmp_path / f"one{SUFFIX}").open("ab") as file:
        file.write(b'{"n":2,"job":"job-2","ten')
    dead(first)
    assert [one.job for one in Journal(tmp_path, "two", URLS).inherit()] == ["job-1"]


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
    assert len(Journal(tmp_path, "two", URLS).inherit()) == 1


@pytest.mark.parametrize(("pool", "noted"), [("short", 0), ("medium", 1), ("long", 1)])
def test_only_jobs_that_are_worth_it_are_noted(pool: str, noted: int) -> None:
    ledger = Ledger(journaled_pools=("medium", "long"))
    ledger.received([lease("a", pool)])
    ledger.ended("a", End("succeeded"))
    assert len(ledger.take_for_journal()) == noted
    assert ledger.take_for_journal() == []


def test_inherited_reports_get_numbers_of_this_life_and_are_said_with_hello() -> None:
    ledger = Ledger()
    ledger.received([lease("mine", "long")])
    ledger.ended("mine", End("succeeded"))
    (left,) = ledger.inherit([report(1, "theirs")])
    assert left.n == 2
    reports = ledger.take_unheard()
    assert {one.job for one in ledger.everything(reports)} == {"mine", "theirs-1"}
    assert [one.n for one in reports] == [1, 2]
    ledger.heard([2])
    assert [one.job for one in ledger.take_unheard()] == ["mine"]


def test_a_lease_of_an_earlier_life_is_named_only_beside_its_report() -> None:
    """To the platform it is another session's until the report proves the right to it."""
    ledger = Ledger()
    mine = [lease("a", "long"), lease("b", "long")]
    ledger.received(mine)
    ledger.ended("a", End("succeeded"))
    (left,) = ledger.inherit([report(1, "theirs")])
    assert {one.job for one in ledger.everything([])} == {"a", "b"}
    assert {one.job for one in ledger.everything([left])} == {"a", "b", "theirs-1"}
    ledger.leave_unnamed([left])
    assert {one.job for one in ledger.everything([left])} == {"a", "b"}


def test_the_last_progress_of_a_run_goes_out_before_its_end() -> None:
    ledger = Ledger()
    ledger.received([lease("a", "long")])
    ledger.progressed("a", Raw(b'{"done":3}'))
    ledger.ended("a", End("cancelled"))
    (said,) = ledger.take_progress() or []
    assert (said.job, bytes(said.progress)) == ("a", b'{"done":3}')
    assert ledger.take_progress() is None
