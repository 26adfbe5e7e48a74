"""Many jobs of one call: in slices, a few on their way at once, answers in order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from fairway.core.errors import FairwayError, Unavailable
from fairway.sdk.client import batch_calls
from fairway.sdk.client.backend import Submission
from fairway.sdk.client.batch_calls import (
    AT_ONCE,
    SLICE_JOBS,
    SLICE_JOBS_MAX,
    BatchCalls,
    Failed,
    in_slices,
    sent,
)
from fairway.wire.messages import BATCH_MAX, JobRequest
from fairway.wire.unique import UniqueRequest
from fairway.wire.value_count import BATCH_VALUES_MAX


def jobs(count: int, payload: bytes = b"{}") -> list[Submission]:
    nobody: Any = None  # a slice does not look at the type
    return [
        Submission(nobody, JobRequest(type="t", payload=Raw(payload)), f"{n}") for n in range(count)
    ]


@given(st.lists(st.integers(0, 60_000), max_size=12), st.integers(0, 3 * SLICE_JOBS))
def test_slices_hold_all_jobs_in_order_and_none_holds_too_much(
    values: list[int], small: int
) -> None:
    heavy = [jobs(1, b"[" + b"," * n + b"]")[0] for n in values]
    given_jobs = jobs(small) + heavy
    found = list(in_slices(given_jobs))
    assert [one for part in found for one in part] == given_jobs
    assert all(0 < len(part) <= SLICE_JOBS_MAX <= BATCH_MAX for part in found)
    for part in found:
        commas = sum(bytes(one.request.payload).count(b",") for one in part)
        assert len(part) == 1 or commas <= BATCH_VALUES_MAX


def test_a_small_call_is_one_request_and_a_thousand_jobs_overlap() -> None:
    assert [len(part) for part in in_slices(jobs(SLICE_JOBS))] == [SLICE_JOBS]
    assert len(list(in_slices(jobs(1000)))) > 1


class Door:
    """A server that answers when it is told to, in any order."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.under_way = self.most = 0
        self.places: list[str] = []
        self._fails_at = fails_at

    async def send(self, part: list[Submission]) -> Sequence[str | FairwayError]:
        place = len(self.places)
        self.places.append(part[0].idempotency_key or "")
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        for _ in range(10 - place % 10):  # later ones answer first
            await asyncio.sleep(0)
        self.under_way -= 1
        if place == self._fails_at:
            raise Unavailable("not now")
        return [one.idempotency_key or "" for one in part]


async def test_answers_stand_in_the_order_of_the_jobs() -> None:
    door, slices = Door(), [jobs(25)[n : n + 5] for n in range(0, 25, 5)]
    answers = await sent(slices, door.send, AT_ONCE)
    assert [one for part in answers for one in part] == [str(n) for n in range(25)]
    assert door.most == AT_ONCE
    assert await sent([], door.send, AT_ONCE) == []


@pytest.mark.parametrize("unique", [None, UniqueRequest(key="k", on_conflict="replace")])
async def test_slices_of_unique_jobs_go_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch, unique: UniqueRequest | None
) -> None:
    """Of debounced jobs the last call's arguments are run with, also where there are very many."""
    transport: Any = None  # nothing is sent
    door, calls, given_jobs = Door(), BatchCalls(transport), jobs(2 * SLICE_JOBS + 1)
    monkeypatch.setattr(calls, "_part", door.send)
    for one in given_jobs:
        one.request.unique = unique
    assert await calls.submit(given_jobs) == [one.idempotency_key for one in given_jobs]
    assert door.places == [str(n * SLICE_JOBS) for n in range(3)]
    assert door.most == (AT_ONCE if unique is None else 1)


async def test_a_slice_that_fails_keeps_back_those_that_have_not_set_out() -> None:
    door, slices = Door(fails_at=1), [jobs(50)[n : n + 5] for n in range(0, 50, 5)]
    answers = await sent(slices, door.send, AT_ONCE)
    assert [len(part) for part in answers] == [5] * 10
    accepted = [n for n, part in enumerate(answers) if not isinstance(part, Failed)]
    assert 1 not in accepted
    assert 0 in accepted
    assert len(door.places) < 10
    assert accepted == [n for n in range(len(door.places)) if n != 1]


async def test_what_is_no_refusal_ends_the_others_and_is_raised() -> None:
    ended: list[str] = []

    async def send(part: list[Submission]) -> Sequence[str | FairwayError]:
        if part[0].idempotency_key == "0":
            await asyncio.sleep(0)
            raise ZeroDivisionError
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(part[0].idempotency_key or "")
        return []

    with pytest.raises(ZeroDivisionError):
        await sent([[one] for one in jobs(5)], send, batch_calls.AT_ONCE)
    assert ended == ["1", "2"]
