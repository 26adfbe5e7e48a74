"""Where a job of a tenant in several shards goes, and what each part is entitled to."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.core.ids import ShardId, TenantId
from fairway.core.ownership import tenant_parts as parts
from fairway.core.tenant import Tenant

COUNTS = st.integers(2, parts.PARTS_MAX)


@given(st.text(), COUNTS, st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_key_leads_to_the_same_part_whoever_is_asked_and_when(
    key: str, count: int, turn: int, later: int
) -> None:
    first = parts.part_of_job(key, count, turn, is_judged_in_one_place=False)
    assert first == parts.part_of_job(key, count, later, is_judged_in_one_place=False)
    assert 0 <= first < count


def test_keys_lead_where_they_always_led() -> None:
    """Another answer, and a job that is sent again after an upgrade is accepted twice."""
    led = [parts.part_of_key(key, 4) for key in ("", "a", "order-4711", "größer", "\ud800")]
    assert led == [0, 3, 1, 2, 0]


@settings(max_examples=10)
@given(st.text(max_size=8), COUNTS)
def test_keys_and_turns_are_spread(prefix: str, count: int) -> None:
    by_key = Counter(parts.part_of_key(f"{prefix}{n}", count) for n in range(200 * count))
    assert len(by_key) == count
    assert all(100 < found < 300 for found in by_key.values())
    turns = [
        parts.part_of_job(None, count, n, is_judged_in_one_place=False) for n in range(3 * count)
    ]
    assert {*Counter(turns).values()} == {3}


@given(st.none() | st.text(), COUNTS, st.integers(0, 100))
def test_what_is_judged_in_one_place_goes_to_the_first(
    key: str | None, count: int, turn: int
) -> None:
    assert parts.part_of_job(key, count, turn, is_judged_in_one_place=True) == parts.FIRST


@given(COUNTS, st.integers(parts.PARTS_MAX, 4096), st.integers(0, 4095))
def test_every_part_has_a_shard_that_no_other_has(count: int, shards: int, first: int) -> None:
    """By which the id of a job tells its part."""
    home = ShardId(first % shards)
    found = parts.shards_of_parts(home, count, shards)
    assert found[0] == home
    assert len({*found}) == count
    assert all(0 <= one < shards for one in found)


@given(COUNTS, st.integers(1, 10**6), st.none() | st.integers(1, 1000), st.integers(0, 1000))
def test_parts_add_up_to_the_whole(count: int, whole: int, cap: int | None, slots: int) -> None:
    """But that each has at least one of what none can go without."""
    ids = tuple(TenantId(n + 1) for n in range(count))
    tenant = Tenant(ids[0], "big", whole, whole, floor_share=slots, cap=cap, parts=ids)
    tenant = tenant._replace(rate_per_second=whole, burst=whole, reserved=(("short", slots),))
    found = [parts.part_in_force(tenant, place) for place in range(count)]
    assert sum(one.reserved[0][1] for one in found) == sum(o.floor_share for o in found) == slots
    for name in ("weight", "rate_per_second", "burst", "depth_limit"):
        values = [getattr(one, name) for one in found]
        assert sum(values) == max(whole, count)
        assert max(values) - min(values) <= 1
    assert [one.parts for one in found] == [ids, *([()] * (count - 1))]
    if cap is not None:
        assert sum(one.cap or 0 for one in found) == max(cap, count)
    shut = tenant._replace(depth_limit=0)
    assert {parts.part_in_force(shut, place).depth_limit for place in range(count)} == {0}


@given(st.from_regex(r"[a-z0-9][a-z0-9_.-]{0,62}", fullmatch=True), st.integers(0, 15))
def test_a_part_is_named_after_the_whole(name: str, place: int) -> None:
    named = parts.part_name(name, place)
    assert parts.whole_name(named) == name
    assert parts.is_further_part(named) == (place > 0)
    assert parts.whole_name("#7") == "#7"
    assert not parts.is_further_part("#7")
