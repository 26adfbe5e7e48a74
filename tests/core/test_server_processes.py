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
    ProcessGroup,
    SiblingFiles,
    connections_needed,
    connections_of,
    part_of,
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


@tried()
@given(COUNTS, st.integers(1, 10**9), st.integers(1, 10**9))
def test_parts_of_memory_are_no_more_than_all_of_it_but_for_what_each_needs(
    processes: int, whole: int, least: int
) -> None:
    part = part_of(whole, processes, least)
    assert min(whole, least) <= part <= whole
    assert part <= least or processes * part < whole + processes, "a part, rounded up"


@tried()
@given(COUNTS.flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n))))
def test_a_process_learns_who_it_is_as_its_parent_says(drawn: tuple[int, int]) -> None:
    count, number = drawn
    urls = tuple(f"http://[::1]:{port}" for port in range(9000, 9000 + count))
    files = SiblingFiles(90, 90 + number, tuple(range(91, 91 + count)))
    group = ProcessGroup("1f00", number, 7, urls, tuple(range(20, 20 + count)), files)
    assert ProcessGroup.of({"FAIRWAY_PROCESS_GROUP": group.said()}) == group
    assert sorted([*group.siblings, number]) == list(range(1, count + 1))
    assert group.pid_of(group.server_name(4711)) == 4711


def test_who_is_alone_is_in_no_group() -> None:
    assert ProcessGroup.of({}) is None
