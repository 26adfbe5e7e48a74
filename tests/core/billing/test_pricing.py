"""A statement is its hours, each at its own price: whatever prices there are, nothing is lost."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.billing.periods import Month
from fairway.core.billing.pricing import (
    ANY_POOL,
    Price,
    PricedUse,
    amount_of,
    cuts,
    lines_of,
    parsed_id,
    price_at,
    total_micros,
)
from fairway.core.billing.usage import Used, joined, total_of
from fairway.core.ids import PoolId, TypeId

MONTH = Month(2026, 2)
HOURS = (MONTH.ends - MONTH.begins) // timedelta(hours=1)
POOLS = ("short", "long")

near = st.integers(-40, HOURS + 40).map(lambda count: MONTH.begins + timedelta(hours=count))
prices = st.lists(
    st.builds(
        Price,
        st.sampled_from((ANY_POOL, *POOLS)),
        near,
        st.integers(0, 10**9),
        st.integers(0, 10**8),
    ),
    max_size=8,
    unique_by=lambda one: (one.pool, one.valid_from),
)
hourly = st.lists(
    st.tuples(
        st.integers(0, HOURS - 1),
        st.sampled_from(POOLS),
        st.sampled_from(("a", "b")),
        st.integers(0, 10**12),
    ),
    max_size=30,
)


def as_read(used: list[tuple[int, str, str, int]], known: list[Price]) -> list[PricedUse]:
    """As the store sums it: by the pieces of the month in which no price changes."""
    begins, sums = cuts(known, MONTH), defaultdict[tuple[datetime, str, str], int](int)
    for hour, pool, type_, billed_us in used:
        moment = MONTH.begins + timedelta(hours=hour)
        sums[max(one for one in begins if one <= moment), pool, type_] += billed_us
    return [PricedUse(*key, 1, 2, billed_us, 3) for key, billed_us in sums.items()]


@given(hourly, prices)
def test_every_hour_is_paid_at_its_own_price(
    used: list[tuple[int, str, str, int]], known: list[Price]
) -> None:
    owed: dict[tuple[str, str, int], int] = defaultdict(int)
    for hour, pool, type_, billed_us in used:
        price = price_at(known, pool, MONTH.begins + timedelta(hours=hour))
        owed[pool, type_, price.slot_second_micros if price else 0] += billed_us
    lines = [one for one in lines_of(as_read(used, known), known, MONTH) if one.kind == "usage"]
    assert {(one.pool, one.type, one.price_micros): one.billed_us for one in lines} == owed
    for one in lines:
        exact = Fraction(one.billed_us * one.price_micros, 10**6)
        assert abs(one.amount_micros - exact) <= Fraction(1, 2), "rounded once"
    assert sum(one.billed_us for one in lines) == sum(billed_us for *_, billed_us in used)


@given(hourly, prices)
def test_a_total_is_the_sum_of_what_stands_there(
    used: list[tuple[int, str, str, int]], known: list[Price]
) -> None:
    lines = lines_of(as_read(used, known), known, MONTH)
    assert total_micros(lines) == sum(one.amount_micros for one in lines)
    fees = {one.pool: one.amount_micros for one in lines if one.kind == "base_fee"}
    assert len(fees) == sum(one.kind == "base_fee" for one in lines), "each once"
    assert set(fees) <= {ANY_POOL, *(pool for _, pool, *_ in used)}
    for pool, fee in fees.items():
        held = [one for one in known if one.pool == pool and one.valid_from <= MONTH.begins]
        assert fee == max(held, key=lambda one: one.valid_from).base_fee_micros > 0


@given(prices, near, st.sampled_from(POOLS))
def test_a_pools_own_price_goes_first(known: list[Price], moment: datetime, pool: str) -> None:
    found = price_at(known, pool, moment)
    begun = [one for one in known if one.valid_from <= moment]
    own = [one for one in begun if one.pool == pool]
    of_all = [one for one in begun if one.pool == ANY_POOL]
    if found is None:
        assert not own
        assert not of_all
    else:
        assert found in (own or of_all)
        assert all(one.valid_from <= found.valid_from for one in (own or of_all))


@given(st.integers(0, 10**15), st.integers(0, 10**8))
def test_half_a_micro_is_rounded_up(billed_us: int, price: int) -> None:
    exact = Fraction(billed_us * price, 10**6)
    assert amount_of(billed_us, price) == (exact + Fraction(1, 2)).__floor__()


uses = st.builds(
    Used, st.integers(1, 4), st.integers(1, 3).map(PoolId), st.integers(1, 3).map(TypeId),
    *([st.integers(0, 2**62)] * 4),
)  # fmt: skip


@given(st.lists(uses), st.integers(0, 20))
def test_parts_that_are_joined_are_the_whole(parts: list[Used], cut: int) -> None:
    whole = joined(parts)
    assert joined([*joined(parts[:cut]), *joined(parts[cut:])]) == whole
    assert total_of(whole) == total_of(parts)
    assert len({one[:3] for one in whole}) == len(whole)


@given(prices)
def test_a_price_is_found_by_its_id(known: list[Price]) -> None:
    assert len({one.id for one in known}) == len(known)
    for one in known:
        assert parsed_id(one.id) == (one.pool, one.valid_from)


@given(st.text(max_size=20))
def test_what_is_no_id_is_none(text: str) -> None:
    found = parsed_id(text)
    assert found is None or Price(*found, 0, 0).id == text
