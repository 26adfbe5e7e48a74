"""What travels in one call: never more than a server takes at once, never nothing, in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.api.payloads.body_cost import LIGHT_BYTES
from fairway.sdk.client import gathering
from fairway.wire.messages import BATCH_MAX
from fairway.wire.value_count import BATCH_VALUES_MAX

SIZES = st.lists(st.integers(2, gathering.JOB_BYTES_MAX + 255), min_size=1, max_size=700)


@given(SIZES, st.integers(1, gathering.JOBS_MAX))
def test_a_call_is_bounded_and_as_large_as_may_be(sizes: list[int], jobs_max: int) -> None:
    end = gathering.call_end(sizes, jobs_max)
    assert 1 <= end <= min(len(sizes), jobs_max)
    assert end == 1 or sum(sizes[:end]) <= gathering.BYTES_MAX
    if end < len(sizes) and end < jobs_max:
        assert sum(sizes[: end + 1]) > gathering.BYTES_MAX


def test_a_call_is_light_for_the_server() -> None:
    marks = gathering.JOBS_MAX * len('"",,') + len('{"jobs":[],"idempotency_keys":[]}')
    assert gathering.BYTES_MAX + marks <= LIGHT_BYTES <= BATCH_VALUES_MAX
    assert gathering.JOBS_MAX <= BATCH_MAX


def test_a_lone_job_goes_at_once_and_calls_are_few() -> None:
    assert gathering.jobs_wanted(0) == 1
    wanted = [gathering.jobs_wanted(calls) for calls in range(gathering.CALLS_MAX + 1)]
    assert wanted == sorted(wanted)
    assert wanted[-1] == gathering.NEVER


@given(st.integers(2, gathering.JOBS_MAX))
def test_a_refused_call_soon_comes_down_to_single_jobs_and_grows_again(jobs: int) -> None:
    steps = 0
    while jobs > 1:
        assert gathering.smaller(jobs) < jobs
        jobs, steps = gathering.smaller(jobs), steps + 1
    assert steps <= 9
    for _ in range(9):
        jobs = gathering.larger(jobs)
    assert jobs == gathering.JOBS_MAX
