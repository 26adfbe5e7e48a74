"""Names that nobody can guess or make twice."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import COUNTER_MAX, Epoch, ShardId, shard_of, unix_ms_of
from fairway.core.keys import SCOPES, ApiKey
from fairway.runtime.clock import ManualClock, SystemClock
from fairway.runtime.random_ids import JobIdFactory, lease_tokens, new_api_key, session_key


@given(st.lists(st.tuples(st.integers(0, 40), st.floats(0, 0.01)), max_size=20))
def test_ids_of_one_process_are_unique_and_in_order(steps: list[tuple[int, float]]) -> None:
    clock = ManualClock()
    factory = JobIdFactory(clock)
    ids: list[str] = []
    for count, seconds in steps:
        ids += factory.make(ShardId(3), count)
        clock.advance(seconds)
    assert ids == sorted(set(ids))
    assert all(shard_of(job) == 3 for job in ids)


def test_a_clock_that_goes_back_does_not_break_the_order() -> None:
    clock = ManualClock()
    factory = JobIdFactory(clock)
    before = factory.make(ShardId(0), 2)
    clock.advance(-60)
    after = factory.make(ShardId(0), 2)
    assert before + after == sorted(set(before + after))


def test_a_millisecond_that_is_full_borrows_the_next() -> None:
    clock = ManualClock()
    factory = JobIdFactory(clock)
    first = factory.make(ShardId(0), 3)
    factory._counter = COUNTER_MAX - 1
    second = factory.make(ShardId(0), 3)
    assert second > first
    assert unix_ms_of(second[0]) == unix_ms_of(first[0]) + 1


def test_two_processes_make_different_ids_in_the_same_moment() -> None:
    clock = ManualClock()
    one, other = JobIdFactory(clock), JobIdFactory(clock)
    assert not set(one.make(ShardId(0), 1000)) & set(other.make(ShardId(0), 1000))


def test_tokens_and_sessions_are_128_bits_that_nobody_guesses() -> None:
    # of servers of one cluster
    made = [lease_tokens("secret").make("job", Epoch(1)) for _ in range(100)]
    tokens = [*made, session_key(), session_key()]
    assert len(set(tokens)) == 102
    assert all(re.fullmatch("[0-9a-f]{32}", token) for token in tokens)


def test_a_server_without_a_secret_knows_its_own_tokens_alone() -> None:
    one, other = lease_tokens(), lease_tokens()
    token = one.make("job", Epoch(1))
    assert one.is_real("job", Epoch(1), token)
    assert not other.is_real("job", Epoch(1), token)


def test_new_keys_are_whole() -> None:
    for scope in SCOPES:
        key = new_api_key(scope)
        assert ApiKey.parse(key.text) == key


def test_the_system_clock_goes_forward() -> None:
    clock = SystemClock()
    assert clock.now_us() <= clock.now_us()
    assert abs(clock.unix_ms() - clock.unix_ms()) < 1000
