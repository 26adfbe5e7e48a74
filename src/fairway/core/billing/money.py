"""Money as text: every digit that counts, by whole numbers, and the currency if it has a name."""

from __future__ import annotations

import re

NO_CURRENCY = "XXX"  # of ISO 4217: there is none
MILLION = 1_000_000
_CODE = re.compile(r"[A-Z]{3}")


def is_currency(text: str) -> bool:
    """Whether it is written as the codes of ISO 4217 are."""
    return _CODE.fullmatch(text) is not None


def exact(millionths: int) -> str:
    """`12.5` of 12500000."""
    whole, rest = divmod(millionths, MILLION)
    return f"{whole}.{rest:06}".rstrip("0").rstrip(".")


def money(micros: int, currency: str) -> str:
    """`12.5 EUR`; a currency without a name is left out."""
    return exact(micros) if currency == NO_CURRENCY else f"{exact(micros)} {currency}"
