"""How many server processes there are by default, and what each may have of PostgreSQL."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.properties import tried

from fairway.core.server_processes import (
    DEFAULT_MAX,
    LEAST,
    PROCESSES_MAX,
    WHOLE,
    connections_needed,
    connections_of,
    pool_sizes,
    processes_by_cores,
)

COUNTS = st.integers(1, PROCESSES_MAX)


def test_small_machines_have_one_and_large_ones_half() -> None:
    found = [processes_by_cores(cores) for cores in (1, 2, 3, 4, 8, 16, 64)]
    assert found == [1, 1, 1, 2, 4, 8, 8]


@tried()
@given(st.integers(1, 1024))
def test_cores_are_left_for_others_and_more_cores_are_never_fewer_processes(cores: int) -> None:
    count = processes_by_cores(cores)
    assert 1 <= count <= max(1, cores // 2)
    assert count <= processes_by_cores(cores + 1) <= DEFAULT_MAX


def test_one_process_has_what_a_server_always_had() -> None:
    assert pool_sizes(1) == WHOLE
    assert (connections_of(1), connections_needed(1)) == (15, 20)


def test_as_many_as_by_default_fit_into_a_usual_postgresql() -> None:
    assert connections_needed(DEFAULT_MAX) <= 97, "100, less those that are reserved"


@tried()
@given(COUNTS)
def test_together_they_keep_to_one_servers_pools_as_far_as_each_can_work(processes: int) -> None:
    for whole, least, size in zip(WHOLE, LEAST, pool_sizes(processes), strict=True):
        assert least <= size <= whole
        assert size == least or processes * size < whole + processes, "a part, rounded up"
