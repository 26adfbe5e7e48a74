"""What uploads cost: every one something as long as it is kept; and nobody may be idle for long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.object_storage.upload_quota import (
    CHARGE_BYTES_MIN,
    GRACE_SECONDS,
    RATE_BYTES_PER_SECOND,
    charges_of,
    patience_seconds,
)

SIZES = st.dictionaries(st.text("abc", min_size=1), st.integers(0, 1 << 34), max_size=8)


@given(SIZES, st.sets(st.text("abc", min_size=1)))
def test_what_is_kept_is_charged(sizes: dict[str, int], claimed: set[str]) -> None:
    listing = [(f"uploads/day/7/{upload}/body", size) for upload, size in sizes.items()]
    listing += [(f"uploads/day/7/{upload}/found", 90) for upload in sizes]
    listing += [(f"uploads/day/7/{upload}/claimed", 0) for upload in claimed]
    waiting = [size for upload, size in sizes.items() if upload not in claimed]
    charges = charges_of(listing)
    for charged, counted in [
        (charges.unclaimed_bytes, waiting),
        (charges.kept_bytes, list(sizes.values())),
    ]:
        assert charged >= sum(counted)
        assert len(counted) * CHARGE_BYTES_MIN <= charged
        assert charged <= sum(counted) + len(counted) * CHARGE_BYTES_MIN


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 30), st.floats(1, 1e5))
def test_who_keeps_the_rate_is_waited_for(received: int, more: int, longest: float) -> None:
    allowed = patience_seconds(received, longest)
    assert min(received / RATE_BYTES_PER_SECOND, longest) <= allowed <= longest
    assert allowed <= patience_seconds(received + more, longest)
    assert patience_seconds(0, longest) <= GRACE_SECONDS
