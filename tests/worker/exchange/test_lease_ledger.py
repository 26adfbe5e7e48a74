"""What a worker remembers of its leases: none is begun twice, and what ended is said to have."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.worker.platform import ended, ignore, job_id, lease

from fairway.core.ids import Epoch, shard_of
from fairway.worker.exchange import lease_ledger
from fairway.worker.exchange.lease_ledger import LeaseLedger, Part


def told(book: LeaseLedger, number: int) -> None:
    """A whole run: received, ended, and heard of."""
    assert book.received([lease(number)])
    book.ended(ended(job_id(number)))
    book.heard([one.n for one in book.take_fresh()])


def test_a_lease_that_comes_again_after_its_end_was_heard_is_not_begun() -> None:
    """The reply that carries it was made earlier than the one that acknowledged the end."""
    book = LeaseLedger(on_failure=ignore)
    told(book, 1)
    assert book.received([lease(1)]) == []
    assert book.is_settled


def test_the_next_lease_of_a_job_is_begun() -> None:
    book = LeaseLedger(on_failure=ignore)
    told(book, 1)
    again = replace(lease(1), epoch=2)
    assert book.received([again]) == [again]


def test_only_the_last_ends_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_ledger, "DONE_MAX", 10)
    book = LeaseLedger(on_failure=ignore)
    for number in range(1, 101):
        told(book, number)
    assert book.received([lease(n) for n in range(91, 101)]) == []
    assert len(book.received([lease(n) for n in range(1, 81)])) == 80


def test_what_has_ended_is_named_as_ended() -> None:
    book = LeaseLedger(on_failure=ignore)
    book.received([lease(1), lease(2)])
    book.progressed(job_id(1), lease(1).payload)
    book.ended(ended(job_id(1), "failed"))
    expected = {job_id(1): True, job_id(2): False}
    assert {one.job: one.ended for one in book.everything([])} == expected
    named = book.with_all_held(book.take_progress() or [])
    assert {one.job: one.ended for one in named} == expected


def test_a_late_word_of_a_lost_lease_does_not_stop_the_next_run() -> None:
    """The reply that takes a lease back may be heard after the one that brings the next."""
    book = LeaseLedger(on_failure=ignore)
    old, new = lease(1), replace(lease(1), epoch=2)
    book.received([old])
    assert book.superseded([new]) == [old.job]
    assert book.received([new]) == [new]
    assert book.lost([old.job], [old.epoch]) == []
    assert book.running == {new.job: new}
    assert book.lost([new.job, job_id(2)], [new.epoch, Epoch(1)]) == [new.job]
    assert book.running == {}


def test_an_older_server_means_whatever_runs() -> None:
    book = LeaseLedger(on_failure=ignore)
    book.received([replace(lease(1), epoch=7), lease(2)])
    assert book.lost([job_id(1), job_id(3)], []) == [job_id(1)]
    assert list(book.running) == [job_id(2)]


def test_a_lease_that_comes_after_a_newer_one_is_not_begun() -> None:
    book = LeaseLedger(on_failure=ignore)
    late = lease(1)
    newer = replace(late, epoch=2)
    book.received([newer])
    assert book.received([late]) == []
    book.ended(ended(newer.job, epoch=newer.epoch))
    assert book.received([late]) == []
    book.heard([one.n for one in book.take_fresh()])
    assert book.received([late]) == []


def test_whose_a_run_was_its_lease_says_and_not_its_runner() -> None:
    """A runner shares its process with user code, which may write any report."""
    book = LeaseLedger(on_failure=ignore)
    book.received([lease(1)])
    book.ended(ended(job_id(1), n=99, tenant="another", token="f" * 32))
    (said,) = book.take_fresh()
    assert (said.n, said.tenant, said.token) == (1, lease(1).tenant, lease(1).token)


def test_the_end_of_a_job_is_told_to_the_owner_that_its_lease_names() -> None:
    """Its id names another shard: its tenant was moved since. The journal keeps that."""
    book, by_id, moved = LeaseLedger(on_failure=ignore), Part(), Part()
    book.divide({shard_of(job_id(1)): by_id, 9: moved}, Part())
    book.received([lease(1), replace(lease(2), shard=9)])
    assert (by_id.running, moved.running) == (1, 1)
    book.progressed(job_id(2), lease(2).payload)
    assert (by_id.has_news, moved.has_news) == (False, True)
    book.ended(ended(job_id(1)))
    book.ended(ended(job_id(2)))
    (here,), (there,) = book.take_fresh(by_id), book.take_fresh(moved)
    assert (here.job, there.job, there.shard) == (job_id(1), job_id(2), 9)
    book.divide({9: by_id}, Part())
    assert [one.job for one in book.all_unheard(by_id)] == [job_id(2)]


def test_progress_of_a_lost_run_is_told_to_nobody_when_owners_change() -> None:
    book, part = LeaseLedger(on_failure=ignore), Part()
    book.divide({shard_of(job_id(1)): part}, Part())
    book.received([lease(1), lease(2)])
    book.progressed(job_id(1), lease(1).payload)
    book.lost([job_id(1)], [lease(1).epoch])
    book.divide({shard_of(job_id(1)): part}, Part())
    assert not book.take_progress(part)
    assert part.running == 1
