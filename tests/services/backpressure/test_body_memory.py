"""Room for bodies: by bytes, by owner, with a rest for who comes with little."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.errors import FairwayError, LimitReached, Unavailable
from fairway.core.ids import TenantId
from fairway.runtime.telemetry import Metrics
from fairway.services.backpressure.body_memory import (
    LIGHT_BYTES,
    BodyReservation,
    BodyRoom,
    BodyRooms,
)

MB = 1 << 20
ALL = 64 * MB
MOVES = st.lists(
    st.tuples(st.booleans(), st.integers(0, 6), st.integers(64 << 10, ALL // 3)), max_size=60
)


@given(MOVES)
def test_no_owner_and_not_all_together_have_more_than_their_bound(
    moves: list[tuple[bool, int, int]],
) -> None:
    room = BodyRoom("requests", ALL, Metrics())
    inside: list[tuple[int, int, BodyReservation]] = []
    for leaves, owner, size in moves:
        if leaves and inside:
            inside.pop(0)[2].give_back()
            continue
        try:
            inside.append((owner, size, room.take(owner, size)))
        except FairwayError:
            continue
        finally:
            assert room.bytes_held == sum(size for _, size, _ in inside)
        own = [size for one, size, _ in inside if one == owner]
        assert room.bytes_held <= ALL
        assert len(own) == 1 or (sum(own) <= ALL // 4 and room.bytes_held <= ALL // 2)
        assert size <= LIGHT_BYTES or room.bytes_held <= ALL * 3 // 4 or len(inside) == 1
    for _, _, place in inside:
        place.give_back()
        place.give_back()  # twice is once
    assert room.bytes_held == 0


def test_who_fills_its_part_hears_so_and_others_do_not_notice() -> None:
    room = BodyRoom("requests", ALL, Metrics())
    place = room.take("greedy", ALL // 4)
    with pytest.raises(LimitReached, match="Nothing of this one was read") as refused:
        room.take("greedy", MB)
    assert (refused.value.code, refused.value.retry_after_seconds) == ("TOO_MANY_BYTES", 2)
    room.take("other", ALL // 4)
    place.give_back()
    room.take("greedy", MB)


def test_a_part_is_a_fourth_to_the_byte() -> None:
    room = BodyRoom("requests", ALL, Metrics())
    room.take("one", ALL // 4 - MB)
    room.take("one", MB)
    with pytest.raises(LimitReached):
        room.take("one", 1)


def test_who_has_something_inside_fills_the_room_to_one_half() -> None:
    room = BodyRoom("requests", ALL, Metrics())
    room.take("one", MB)
    for owner in ("two", "three"):
        room.take(owner, ALL // 4 - MB)
    room.take("one", MB)  # which makes it half full, to the byte
    with pytest.raises(Unavailable) as refused:
        room.take("one", 65 << 10)
    assert refused.value.code == "NO_ROOM", "its own part has room"
    room.take("four", ALL // 4)  # three fourths, to the byte: it had nothing inside


def test_the_parts_of_a_room_for_bodies() -> None:
    """As OPERATING.md has them: half for requests, a fourth for either kind of workers."""
    rooms = BodyRooms(4 * ALL, Metrics())
    parts = (
        (rooms.requests, 2 * ALL),
        (rooms.of_worker(TenantId(7), "w")[0], ALL),
        (rooms.of_worker(None, "w")[0], ALL),
        (rooms.checkpoints, 32 * MB),
    )
    for room, bytes_max in parts:
        room.take("one", bytes_max * 3 // 4)
        with pytest.raises(Unavailable):
            room.take("two", 2 * MB)
        for number in range(bytes_max // 4 // MB):
            room.take(number, MB)
        with pytest.raises(Unavailable):
            room.take("last", 65 << 10)
        assert room.bytes_held == bytes_max


def test_each_shared_worker_has_a_part_of_its_own() -> None:
    rooms = BodyRooms(4 * ALL, Metrics())
    for name in ("a", "b"):
        room, owner = rooms.of_worker(None, name)
        room.take(owner, ALL // 4)


def test_the_rest_is_for_who_comes_with_little() -> None:
    room = BodyRoom("requests", ALL, Metrics())
    for owner in range(3):
        room.take(owner, ALL // 4)
    with pytest.raises(Unavailable) as refused:
        room.take("newcomer", 2 * LIGHT_BYTES)
    assert (refused.value.code, refused.value.retry_after_seconds) == ("NO_ROOM", 2)
    room.take("newcomer", LIGHT_BYTES)


def test_one_that_is_larger_than_the_room_passes_alone() -> None:
    room = BodyRoom("requests", MB, Metrics())
    place = room.take("one", 60 * MB)
    with pytest.raises(Unavailable):
        room.take("other", 65 << 10)
    place.shrink(65 << 10)
    room.take("other", 65 << 10)


def test_customers_and_workers_take_no_room_from_each_other() -> None:
    metrics = Metrics()
    rooms = BodyRooms(4 * ALL, metrics)
    own, shared = rooms.of_worker(TenantId(7), "w"), rooms.of_worker(None, "w")
    for room in (rooms.requests, own[0]):
        _fill(room)
    place = shared[0].take("w", 40 * MB)
    assert _metric(metrics, "fairway_body_bytes", kind="shared_workers") == 40 * MB
    place.give_back()
    assert _metric(metrics, "fairway_body_bytes", kind="shared_workers") == 0
    refused = {"kind": "requests", "reason": "all"}
    assert _metric(metrics, "fairway_bodies_refused_total", **refused) == 1


def test_a_worker_is_only_ever_told_to_come_again() -> None:
    room, owner = BodyRooms(4 * ALL, Metrics()).of_worker(TenantId(7), "any")
    assert owner == 7, "all workers of a tenant count together"
    room.take(owner, ALL // 4)
    with pytest.raises(Unavailable) as refused:
        room.take(owner, MB)
    assert refused.value.code == "NO_ROOM"


def _fill(room: BodyRoom) -> None:
    for number in range(100):
        try:
            room.take(number, 10 * MB)
        except Unavailable:
            return
    raise AssertionError("it has no end")


def _metric(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)
