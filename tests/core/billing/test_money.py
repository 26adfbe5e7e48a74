"""Money as text loses no digit."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.billing.money import NO_CURRENCY, exact, is_currency, money


@given(st.integers(0, 10**19))
def test_no_digit_is_lost_and_none_is_made_up(micros: int) -> None:
    text = exact(micros)
    assert Decimal(text) * 1_000_000 == micros
    assert "." not in text or not text.endswith("0")


def test_a_currency_is_told_if_it_has_a_name() -> None:
    assert money(12_500_000, "EUR") == "12.5 EUR"
    assert money(12_500_000, NO_CURRENCY) == "12.5"


@pytest.mark.parametrize("text", ["", "eur", "EURO", "EU1", "EUR\n", "ÄÖÜ"])
def test_what_is_no_currency(text: str) -> None:
    assert not is_currency(text)
    assert is_currency("EUR")
