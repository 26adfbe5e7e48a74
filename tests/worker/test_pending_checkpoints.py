"""Checkpoints on their way: each is answered once, to the run that asked, or given up with it."""

from __future__ import annotations

import pytest
from tests.worker.platform import job_id

from fairway.core.ids import Epoch
from fairway.sdk.handler.checkpoint import CheckpointFailed, CheckpointRefused
from fairway.worker import pending_checkpoints
from fairway.worker.pending_checkpoints import PendingCheckpoints, checkpoint
from fairway.worker.pipe.pipe import CheckpointAnswer


def answer(job: str, epoch: int, number: int, problem: str = "") -> CheckpointAnswer:
    return CheckpointAnswer(job=job, epoch=Epoch(epoch), number=number, problem=problem)


def test_each_answer_finds_who_asked_and_nobody_else() -> None:
    savings, job = PendingCheckpoints(), job_id(1)
    first = savings.ask(checkpoint(job, Epoch(1), 1, b"{}"))
    second = savings.ask(checkpoint(job, Epoch(1), 2, b"{}"))
    newer = savings.ask(checkpoint(job, Epoch(2), 1, b"{}"))
    assert [one.number for one in savings.take()] == [1, 2, 1]
    assert savings.take() == [], "told once"
    savings.resolve(answer(job, 1, 2))
    assert (first.done(), second.done(), newer.done()) == (False, True, False)
    assert second.result() is None


def test_one_that_is_not_saved_raises_where_it_was_asked_for() -> None:
    savings, job = PendingCheckpoints(), job_id(1)
    failed = savings.ask(checkpoint(job, Epoch(1), 1, b"{}"))
    refused = savings.ask(checkpoint(job, Epoch(1), 2, b"{}"))
    savings.resolve(answer(job, 1, 1, "storage is away"))
    savings.resolve(
        CheckpointAnswer(job=job, epoch=Epoch(1), number=2, problem="too large", is_refused=True)
    )
    with pytest.raises(CheckpointFailed, match="storage is away"):
        failed.result()
    with pytest.raises(CheckpointRefused, match="too large"):
        refused.result()


def test_an_answer_that_comes_twice_or_to_nobody_is_let_go() -> None:
    savings = PendingCheckpoints()
    saved = savings.ask(checkpoint(job_id(1), Epoch(1), 1, b"{}"))
    for _ in range(2):
        savings.resolve(answer(job_id(1), 1, 1))
    savings.resolve(answer(job_id(2), 1, 1))
    assert saved.result() is None


def test_no_thread_waits_for_a_run_that_was_given_up() -> None:
    savings = PendingCheckpoints()
    mine = [savings.ask(checkpoint(job_id(1), Epoch(1), n, b"{}")) for n in (1, 2)]
    other = savings.ask(checkpoint(job_id(2), Epoch(1), 1, b"{}"))
    savings.give_up(job_id(1))
    for saved in mine:
        with pytest.raises(CheckpointFailed, match="lease is lost"):
            saved.result(timeout=0)
    assert not other.done()


def test_a_state_that_fits_into_no_frame_is_refused_before_it_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pending_checkpoints, "STATE_BYTES_MAX", 10)
    assert bytes(checkpoint(job_id(1), Epoch(1), 1, b'"12345678"').state) == b'"12345678"'
    with pytest.raises(CheckpointRefused, match="11 bytes; at most 10"):
        checkpoint(job_id(1), Epoch(1), 1, b'"123456789"')
    with pytest.raises(CheckpointRefused, match="no JSON"):
        checkpoint(job_id(1), Epoch(1), 1, b"{")
