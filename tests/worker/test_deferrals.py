"""A job is put off so many times in a row and no more, however many others there are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.worker.deferrals import Deferrals


@given(st.lists(st.sampled_from(["a", "b", "c!", "c"]), max_size=60), st.integers(1, 5))
def test_every_job_is_given_up_in_the_end(calls: list[str], times_max: int) -> None:
    """A name with ! was fetched: it starts from nothing."""
    deferrals = Deferrals(times_max)
    in_a_row: dict[str, int] = {}
    for call in calls:
        job = call.rstrip("!")
        if call.endswith("!"):
            deferrals.forget(job)
            in_a_row[job] = 0
            continue
        again = deferrals.once_more(job)
        assert again == (in_a_row.get(job, 0) < times_max)
        in_a_row[job] = in_a_row.get(job, 0) + 1 if again else 0


def test_memory_is_bounded() -> None:
    deferrals = Deferrals(1, remembered_max=10)
    assert all(deferrals.once_more(str(n)) for n in range(100))
    assert not deferrals.once_more("99")
    assert deferrals.once_more("0"), "forgotten long ago"
