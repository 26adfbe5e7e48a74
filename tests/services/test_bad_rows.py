"""One statement for many: who spoils it stands aside, unless it is the store that is at fault."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import ShardId
from fairway.services.bad_rows import ALONE_MAX, Aside, each_apart, in_each_shard


def store_that_refuses(
    bad: set[int], done: list[int]
) -> Callable[[Sequence[int]], Awaitable[None]]:
    async def act(some: Sequence[int]) -> None:
        if bad.intersection(some):
            raise asyncpg.DataCorruptedError("invalid page")
        done.extend(some)

    return act


@given(st.integers(1, 60), st.sets(st.integers(0, 59), max_size=8))
async def test_all_but_the_bad_ones_are_done_once(count: int, bad: set[int]) -> None:
    done, refused = list[int](), list[int]()
    await each_apart(
        range(count), store_that_refuses(bad, done), lambda one, error: refused.append(one)
    )
    assert sorted(done) == [one for one in range(count) if one not in bad]
    assert sorted(refused) == sorted(bad.intersection(range(count)))


async def test_when_nothing_is_done_nobody_in_it_is_to_blame() -> None:
    done, refused = list[int](), list[int]()
    act = store_that_refuses(set(range(200)), done)
    with pytest.raises(asyncpg.DataCorruptedError):
        await each_apart(range(200), act, lambda one, error: refused.append(one))
    assert len(refused) <= ALONE_MAX


async def test_an_error_of_the_moment_is_the_callers() -> None:
    async def act(some: Sequence[int]) -> None:
        raise asyncpg.QueryCanceledError("statement timeout")

    with pytest.raises(asyncpg.QueryCanceledError):
        await each_apart([1, 2], act, lambda one, error: None)


async def test_every_shard_has_its_turn_before_one_is_told_of() -> None:
    seen = list[int]()

    async def act(shard: int) -> None:
        seen.append(shard)
        if shard == 1:
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await in_each_shard([ShardId(0), ShardId(1), ShardId(2)], act)
    assert seen == [0, 1, 2]


def test_what_is_aside_comes_again() -> None:
    aside: Aside[str] = Aside()
    aside.put("a", 0)
    assert (aside.holds("a", 1), aside.holds("b", 1)) == (True, False)
    assert not aside.holds("a", 31_000_000)
