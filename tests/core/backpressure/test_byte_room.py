"""Room in bytes: never more than there is, never one owner alone, nobody shut out for ever."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.backpressure.byte_room import ByteRoom

ALL, EACH = 100, 30
OWNERS = range(4)
MOVES = st.lists(
    st.tuples(
        st.sampled_from(["take", "leave", "shrink"]),
        st.sampled_from(OWNERS),
        st.integers(0, 3 * ALL // 2),
    ),
    max_size=80,
)


@given(MOVES, st.randoms(use_true_random=False))
def test_what_is_held_is_the_sum_of_its_places(
    moves: list[tuple[str, int, int]], chance: Random
) -> None:
    room = ByteRoom(ALL, EACH)
    inside: dict[int, tuple[int, int]] = {}
    for key, (move, owner, size) in enumerate(moves):
        some = chance.choice(sorted(inside)) if inside else None
        if move == "take":
            if room.take(key, owner, size):
                inside[key] = (owner, size)
        elif some is not None and move == "leave":
            room.give_back(some)
            room.give_back(some)  # twice is once
            del inside[some]
        elif some is not None:
            room.shrink(some, size)
            inside[some] = (inside[some][0], min(size, inside[some][1]))
        _check_sums(room, list(inside.values()))
    for key in list(inside):
        room.give_back(key)
    assert room.bytes_held == 0
    assert all(room.held_by(owner) == 0 and room.fits(owner, 2 * ALL) for owner in OWNERS)
    assert not room._by_owner, "nobody is remembered who has nothing here"


def _check_sums(room: ByteRoom, places: list[tuple[int, int]]) -> None:
    """The law: sums of places, and no sum over its bound but that of a single one."""
    assert room.bytes_held == sum(size for _, size in places)
    assert room.bytes_held <= ALL or len([size for _, size in places if size]) == 1
    for one in OWNERS:
        sizes = [size for owner, size in places if owner == one and size]
        assert room.held_by(one) == sum(sizes)
        assert sum(sizes) <= EACH or len(sizes) == 1


def test_places_of_no_bytes_leave_as_they_came() -> None:
    room = ByteRoom(ALL, EACH)
    assert room.take("empty", 1, 0)
    assert room.take("empty too", 1, 0)
    room.give_back("empty")
    room.give_back("empty too")
    assert room.bytes_held == room.held_by(1) == 0


def test_what_is_larger_than_all_the_room_passes_alone() -> None:
    room = ByteRoom(ALL, EACH)
    assert room.take("huge", 1, 10 * ALL)
    assert room.take("huge", 1, 10 * ALL), "it is inside"
    assert not room.take("small", 2, 1)
    room.give_back("huge")
    assert room.take("small", 2, 1)


def test_what_turns_out_smaller_makes_room() -> None:
    room = ByteRoom(ALL, EACH)
    assert room.take("unknown", 1, ALL)
    assert not room.take("other", 2, EACH)
    room.shrink("unknown", ALL - EACH)
    room.shrink("unknown", ALL)  # it never grows
    assert room.take("other", 2, EACH)
