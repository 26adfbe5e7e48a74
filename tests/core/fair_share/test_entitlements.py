"""Terms that make no sense are refused when they are made, in words that say what would."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.core.fair_share.entitlements import FREE, WEIGHT_MAX, Entitlement, ShareSettings


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"weight": 0}, "weight must be 1.."),
        ({"weight": WEIGHT_MAX + 1}, "weight must be 1.."),
        ({"group": "gold"}, "group must be"),
        ({"floor_share": -1}, "floor_share must be 0..1000"),
        ({"floor_share": 1001}, "floor_share must be 0..1000"),
        ({"cap": -1}, "must not be negative"),
        ({"reserved": -1}, "must not be negative"),
    ],
)
def test_terms_that_make_no_sense(terms: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Entitlement(**terms)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"prepay_min_us": 0}, "prepay_min_us"),
        ({"prepay_min_us": 2, "prepay_max_us": 1}, "prepay_min_us"),
        ({"guard_share": 999}, "refuse a tenant its own share"),
        ({"free_weight": 0}, "free_weight"),
        ({"free_share": 201, "floors_max_share": 800}, "exceed the pool"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ShareSettings(**settings)


@pytest.mark.parametrize(
    ("terms", "is_plain"),
    [
        ({}, True),
        ({"weight": 1000}, True),
        ({"cap": 0}, False),
        ({"floor_share": 1}, False),
        ({"reserved": 1}, False),
        ({"group": FREE}, False),
    ],
)
def test_the_short_way_is_for_who_has_a_weight_and_nothing_else(
    terms: dict[str, Any], is_plain: bool
) -> None:
    assert Entitlement(**terms).is_plain == is_plain
