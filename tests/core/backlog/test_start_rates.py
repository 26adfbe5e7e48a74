"""Starts in a while: never more than said in any stretch of that length, and soon as many."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairway.core.backlog import start_rates
from fairway.core.backlog.start_rates import (
    MARKS,
    RateName,
    SavedRates,
    StartRates,
    StartWindow,
    pack_rates,
    unpack_rates,
)
from fairway.core.ids import ShardId, TenantId
from fairway.core.ownership.tenant_shards import TenantShards

US = TenantId(1)
SHARD = ShardId(0)
LENGTH_US = 1_600_000
NAME = ("k", LENGTH_US // 1000)
GAPS = st.lists(st.integers(0, LENGTH_US), max_size=80)
MOSTS = st.integers(1, 3)


@given(GAPS, st.integers(1, 5))
def test_in_any_while_no_more_start_than_was_said(gaps_us: list[int], most: int) -> None:
    rates, now_us, starts = StartRates(), 0, list[int]()
    for gap_us in gaps_us:
        now_us += gap_us
        used = rates.used(US, NAME, most, now_us)
        exact = sum(now_us - start < LENGTH_US for start in starts)
        late = sum(now_us - start < LENGTH_US + LENGTH_US // MARKS for start in starts)
        assert exact <= used <= late
        if used < most:
            rates.started(US, NAME, now_us)
            starts.append(now_us)
        else:
            before_us, now_us = now_us, rates.opens_us(US, NAME, now_us)
            assert before_us < now_us <= before_us + LENGTH_US
            assert rates.used(US, NAME, most, now_us) < most
    assert all(sum(0 <= other - start < LENGTH_US for other in starts) <= most for start in starts)


@given(GAPS, st.integers(1, 5))
def test_one_step_is_to_look_and_then_to_count(gaps_us: list[int], most: int) -> None:
    rates, other, now_us = StartRates(), StartRates(), 0
    for gap_us in gaps_us:
        now_us += gap_us // 4
        has_place = other.used(US, NAME, most, now_us) < most
        if has_place:
            other.started(US, NAME, now_us)
        assert rates.start(US, NAME, most, now_us) is has_place
        assert rates.used(US, NAME, most, now_us) == other.used(US, NAME, most, now_us)


NAMES = [("a", 400), ("b", 400), ("c", 400), ("a", 1600), ("d", 100)]


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 500), st.sampled_from(NAMES)), max_size=60), MOSTS)
@example([(0, ("a", 400)), (10, ("b", 400)), (365, ("c", 400)), (10, ("a", 400))], 1)
def test_no_key_is_forgotten_for_what_others_do(
    tries: list[tuple[int, RateName]], most: int
) -> None:
    """Generations turn by the starts of all keys, whose lengths may differ."""
    rates, now_us, starts = StartRates(), 0, list[tuple[RateName, int]]()
    for gap_ms, name in tries:
        now_us += gap_ms * 1000
        length_us = name[1] * 1000
        ages_us = [now_us - at_us for one, at_us in starts if one == name]
        counted = sum(age_us < length_us for age_us in ages_us)
        late = sum(age_us < length_us + length_us // MARKS for age_us in ages_us)
        has_started = rates.start(US, name, most, now_us)
        assert has_started if late < most else True
        assert not has_started if counted >= most else True
        if has_started:
            starts.append((name, now_us))
        assert rates._keys == sum(map(len, rates._windows.values())) <= len(NAMES)


def test_a_run_of_long_ago_makes_nothing_be_forgotten_that_started_since() -> None:
    """A lease that is found again tells of its start: other keys' whiles end no sooner by that."""
    rates, now_us = StartRates(), 10 * LENGTH_US
    assert rates.start(US, NAME, 1, now_us)
    rates.started(US, ("another", NAME[1]), now_us - 2 * LENGTH_US)
    assert not rates.start(US, NAME, 1, now_us + 1)
    assert rates.start(US, NAME, 1, now_us + LENGTH_US)


def test_what_it_remembers_of_a_window_is_bounded() -> None:
    rates = StartRates()
    for now_us in range(0, LENGTH_US, 100):
        rates.started(US, NAME, now_us)
    window = rates._windows[US].get(NAME)
    assert isinstance(window, StartWindow)
    assert len(window.marks) <= 3 * (MARKS + 1)


def test_keys_are_bounded_for_each_and_for_all() -> None:
    rates = StartRates(keys_total=100)
    for tenant in range(1, 9):
        for number in range(60):
            rates.started(TenantId(tenant), (f"{number}", 1000), 0)
    assert rates._keys == sum(map(len, rates._windows.values())) <= 100
    assert len(rates._windows[TenantId(8)]) >= 1
    assert rates.used(TenantId(1), ("59", 1000), 1, 0) == 1  # the one used last is remembered


def test_where_there_are_too_many_those_used_last_are_remembered() -> None:
    rates, hour = StartRates(keys_total=100), 3600 * 1000
    for number in range(1000):
        rates.started(US, (f"{number}", hour), number)
        rates.started(US, ("always", hour), number)
        assert rates._keys == len(rates._windows[US]) <= 50
    assert rates.used(US, ("always", hour), 2000, 1000) == 1000
    assert all(rates.used(US, (f"{number}", hour), 1, 1000) for number in range(980, 1000))


def test_one_that_started_anew_is_not_taken_for_one_of_long_ago() -> None:
    rates, minute_us = StartRates(keys_total=64), 60_000_000
    for number in range(32):
        assert rates.start(US, (f"{number}", 60_000), 1, number)
    assert rates.start(US, ("0", 60_000), 1, minute_us)  # the first of all, and used last
    for number in range(32, 40):
        assert rates.start(US, (f"{number}", 60_000), 1, minute_us)
    assert not rates.start(US, ("0", 60_000), 1, minute_us)
    assert rates._keys == len(rates._windows[US]) <= 32


def test_keys_that_are_over_take_no_room_from_one_that_counts() -> None:
    rates, hour = StartRates(keys_total=100), 3600 * 1000
    rates.started(US, ("long", hour), 0)
    for number in range(1, 2_000):  # 25 new keys a second, each of them over after one
        now_us = number * 40_000
        rates.started(US, (f"{number}", 1000), now_us)
        if number % 25 == 0:
            rates.forget_over(now_us)
    assert rates.used(US, ("long", hour), 5, now_us) == 1
    assert rates._keys == len(rates._windows[US]) <= 50


def test_where_all_are_in_use_the_one_that_is_over_first_goes() -> None:
    rates = StartRates(keys_total=64)
    lengths = {f"{number}": 3_600_000 for number in range(32)} | {"1": 60_000}
    for key, length_ms in lengths.items():
        rates.started(US, (key, length_ms), 0)
    for key, length_ms in lengths.items():
        rates.started(US, (key, length_ms), 1)
    rates.started(US, ("new", 1000), 2)
    assert set(lengths) - {key for (key, _), _ in rates._windows[US].items()} == {"1"}


def test_keys_whose_while_is_over_are_forgotten_though_nobody_comes_again() -> None:
    rates = StartRates()
    for number in range(3_000):
        rates.started(TenantId(number % 7), (f"{number}", 1000), 0)
    rates.started(US, ("long", 3_600_000), 0)
    over_us = 1_000_000
    rates.forget_over(over_us - 1)
    assert rates._keys == 3_001
    for _ in range(9):  # a part each time
        rates.forget_over(over_us)
    assert (rates._keys, list(rates._windows)) == (1, [US])
    assert rates.used(US, ("long", 3_600_000), 5, over_us) == 1


def test_a_new_owner_waits_for_what_it_cannot_know() -> None:
    rates = StartRates()
    rates.begin_anew(ShardId(0), TenantShards(1), 1000)
    assert rates.used(US, NAME, 3, 1000) == 3
    assert rates.opens_us(US, NAME, 1000) == 1000 + LENGTH_US
    assert rates.used(US, NAME, 3, 1000 + LENGTH_US) == 0
    day = ("k", 24 * 3600 * 1000)
    assert rates.opens_us(US, day, 1000) == 1000 + start_rates.CLOSED_US_MAX


def test_a_shard_that_comes_says_nothing_of_the_tenants_of_others() -> None:
    rates, hour, other = StartRates(), ("k", 3600 * 1000), TenantId(2)
    for tenant in (US, other):
        rates.started(tenant, hour, 0)
    rates.begin_anew(ShardId(0), TenantShards(2), 1000)  # where the other is at home
    assert rates.used(US, hour, 5, 1000) == 1
    assert rates.used(other, hour, 5, 1000) == 5
    after_us = 1000 + start_rates.CLOSED_US_MAX
    assert (rates.used(US, hour, 5, after_us), rates.used(other, hour, 5, after_us)) == (1, 0)
    assert rates._keys == 1


# -- over a change of owner ------------------------------------------------------------------------


def handed_over(rates: StartRates, now_us: int, way_us: int = 0) -> StartRates:
    """The next owner's, who hears of it after a while and knows how long that was."""
    saved = unpack_rates(pack_rates(rates.save([SHARD], TenantShards(1), now_us)[SHARD]))
    heir = StartRates()
    heir.begin_anew(SHARD, TenantShards(1), now_us + way_us)
    heir.restore(SHARD, TenantShards(1), saved, now_us)
    return heir


@given(GAPS, st.integers(1, 5), st.integers(1, 9))
@example([0, LENGTH_US, LENGTH_US, LENGTH_US, LENGTH_US], 1, 2)
def test_what_is_handed_over_decides_as_if_nobody_had_changed(
    gaps_us: list[int], most: int, every: int
) -> None:
    alone, rates, now_us = StartRates(), StartRates(), 0
    for number, gap_us in enumerate(gaps_us):
        now_us += gap_us // 4
        if number % every == 0:
            rates = handed_over(rates, now_us)
        assert rates.start(US, NAME, most, now_us) is alone.start(US, NAME, most, now_us)
        assert rates.used(US, NAME, most, now_us) == alone.used(US, NAME, most, now_us)


@given(GAPS, st.integers(1, 5), st.integers(1, 9))
def test_on_the_way_nothing_is_forgotten_too_soon(
    gaps_us: list[int], most: int, every: int
) -> None:
    rates, now_us, starts = StartRates(), 0, list[int]()
    for number, gap_us in enumerate(gaps_us):
        if number % every == 0:
            rates = handed_over(rates, now_us, gap_us // 4)
        now_us += gap_us // 4
        if rates.start(US, NAME, most, now_us):
            starts.append(now_us)
    assert all(sum(0 <= other - start < LENGTH_US for other in starts) <= most for start in starts)


def test_what_an_owner_did_not_know_it_hands_on_as_not_known() -> None:
    rates, hour = StartRates(), ("k", 3600 * 1000)
    rates.begin_anew(SHARD, TenantShards(1), 0)
    saved = rates.save([SHARD], TenantShards(1), 20_000_000)[SHARD]
    heir = StartRates()
    heir.begin_anew(SHARD, TenantShards(1), 25_000_000)
    heir.restore(SHARD, TenantShards(1), saved, 21_000_000)
    assert heir.opens_us(US, hour, 25_000_000) == 1_000_000 + start_rates.CLOSED_US_MAX


def test_one_with_very_many_keys_shuts_out_itself_alone() -> None:
    rates, other, hour = StartRates(), TenantId(2), 3600 * 1000
    for number in range(start_rates.KEYS_PER_TENANT):
        rates.started(US, (f"{number:0200}", hour), 0)
    rates.started(other, ("k", hour), 0)
    saved = rates.save([SHARD], TenantShards(1), 1000)[SHARD]
    assert len(pack_rates(saved)) <= start_rates.SAVED_BYTES_MAX
    heir = StartRates()
    heir.begin_anew(SHARD, TenantShards(1), 1000)
    heir.restore(SHARD, TenantShards(1), saved, 1000)
    assert heir.used(other, ("k", hour), 5, 1000) == 1
    assert heir.used(other, ("new", hour), 5, 1000) == 0
    assert heir.used(US, ("new", hour), 5, 1000) == 5, "it may have been used"
    assert heir.save([SHARD], TenantShards(1), 2000)[SHARD].unknown == [US], (
        "the next but one hears it too"
    )


def test_one_that_did_not_fit_once_is_known_again_later() -> None:
    """Else each further change of owner would forget what it started, and let it start anew."""
    rates, hour = StartRates(), ("k", 3600 * 1000)
    rates.restore(SHARD, TenantShards(1), SavedRates([], [US]), 0)
    later_us = start_rates.CLOSED_US_MAX
    rates.started(US, hour, later_us)
    assert handed_over(rates, later_us).used(US, hour, 5, later_us) == 1


def test_what_is_restored_has_the_same_bounds() -> None:
    rates = StartRates()
    for number in range(200):
        rates.started(TenantId(number), ("k", 1000), 0)
    heir = StartRates(keys_total=100)
    heir.restore(SHARD, TenantShards(1), rates.save([SHARD], TenantShards(1), 0)[SHARD], 0)
    assert heir._keys == 100
