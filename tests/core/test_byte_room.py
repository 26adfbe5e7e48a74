"""Room in bytes: never more than there is, never one owner alone, nobody shut out for ever."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.byte_room import ByteRoom

ALL, EACH = 100, 30
MOVES = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 60), st.booleans()), max_size=60)


@given(MOVES)
def test_it_holds_no_more_than_it_says(moves: list[tuple[int, int, bool]]) -> None:
    room = ByteRoom(ALL, EACH)
    inside: dict[int, tuple[int, int]] = {}
    for key, (owner, size, leaves) in enumerate(moves):
        if leaves and inside:
            gone = next(iter(inside))
            room.give_back(gone)
            room.give_back(gone)  # twice is once
            del inside[gone]
        elif room.take(key, owner, size):
            inside[key] = (owner, size)
        sizes = [size for _, size in inside.values()]
        assert room.bytes_held == sum(sizes) <= ALL
        for one in {owner for owner, _ in inside.values()}:
            held = [size for owner, size in inside.values() if owner == one]
            assert len(held) == 1 or sum(held) <= EACH
    for key in list(inside):
        room.give_back(key)
    assert room.bytes_held == 0
    assert room.fits(0, EACH)


def test_what_is_larger_than_all_the_room_passes_alone() -> None:
    room = ByteRoom(ALL, EACH)
    assert room.take("huge", 1, 10 * ALL)
    assert room.take("huge", 1, 10 * ALL), "it is inside"
    assert not room.take("small", 2, 1)
    room.give_back("huge")
    assert room.take("small", 2, 1)
