"""Results that the platform does not take: no tenant's keep the worker from the others' work."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from tests.worker.platform import Platform, job_id, lease, said_of, until, working

from fairway.core.ids import Epoch
from fairway.wire.exchange import Report
from fairway.worker.exchange import reporting
from fairway.worker.exchange.unacknowledged_results import (
    FULL_SECONDS,
    OVER_SECONDS,
    Held,
    UnacknowledgedResults,
    surplus,
    without_result,
)

ROOM = 1 << 20
LARGE = Raw(b'"' + b"x" * (64 << 10) + b'"')


def done(number: int, tenant: str = "mallory", ran_us: int = 5) -> Report:
    return Report(
        n=number, job=job_id(number), tenant=tenant, epoch=Epoch(1), token="0" * 32,
        kind="succeeded", ran_us=ran_us, result=LARGE,
    )  # fmt: skip


sizes = st.integers(min_value=1, max_value=400)
some_held = st.lists(st.tuples(st.sampled_from("abcd"), sizes, st.integers(0, 3)), max_size=30)


@given(some=some_held, bytes_max=st.integers(min_value=4, max_value=1000))
def test_what_stays_is_within_the_bounds_and_nobody_pays_for_another(
    some: list[tuple[str, int, int]], bytes_max: int
) -> None:
    held = [Held(n, tenant, size, ran, 0.0) for n, (tenant, size, ran) in enumerate(some)]
    gone = set(surplus(held, bytes_max, spare_single=False))
    left: dict[str, int] = defaultdict(int)
    for one in held:
        left[one.tenant] += one.size_bytes * (one.number not in gone)
    assert sum(left.values()) <= bytes_max
    part = bytes_max // max(len({one.tenant for one in held}), 1)
    for tenant in left:
        mine = sum(one.size_bytes for one in held if one.tenant == tenant)
        assert mine > part or left[tenant] == mine, "who is within its part gives up nothing"


def test_who_fills_the_worker_gives_up_and_it_has_room_again() -> None:
    held = UnacknowledgedResults(ROOM)
    reports = [done(n) for n in range(1, 21)] + [done(30, "other"), done(31, ran_us=10**9)]
    assert held.look(reports, (), 0.0) == []
    assert held.bytes_held >= ROOM, "full: it takes no more work"
    gone = set(held.look(reports, (), FULL_SECONDS))
    assert not gone & {30, 31}, "neither another's, nor what ran longest"
    kept = [one for one in reports if one.n not in gone]
    assert held.look(kept, (), FULL_SECONDS + 1) == []
    assert held.bytes_held <= ROOM // 2


def test_what_waits_to_be_said_is_not_given_up() -> None:
    held = UnacknowledgedResults(ROOM)
    reports = [done(n) for n in range(1, 13)]  # over her part, and the worker is not full
    unsaid = {one.n for one in reports}
    for second in range(100):
        assert held.look(reports, unsaid, float(second)) == []
    assert held.look(reports, (), 100.0) == []
    assert held.look(reports, (), 99.0 + OVER_SECONDS), "from when it was said"


def test_a_run_without_its_result_failed_for_want_of_storage() -> None:
    small = without_result(done(1))
    assert (small.kind, small.failure, bytes(small.result)) == ("failed", "dependency", b"null")
    assert said_of(small)["dependency"] == "object storage"


async def test_one_tenants_untaken_results_do_not_keep_the_worker_from_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reporting, "HELD_BYTES_MAX", ROOM)
    count = 18
    async with Platform().open() as platform:
        platform.takes = lambda report: len(bytes(report.result)) < 1000
        text = "x" * (64 << 10)
        platform.leases = [lease(n, "echo", "medium", {"text": text}) for n in range(1, count + 1)]
        async with working(platform) as life:
            await until(lambda: len(platform.heard) >= count // 2, life, "she gives up")
            platform.leases = [lease(99, "echo", "medium", {"text": "of another"})]
            await until(lambda: job_id(99) in platform.heard, life, "it works on")
        given_up = [one for job, one in platform.heard.items() if job != job_id(99)]
    assert {one.failure for one in given_up} == {"dependency"}
    assert len(given_up) < count, "half of the room stays in use"
