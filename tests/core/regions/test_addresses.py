"""Which settings name a server that others can be sent to."""

from __future__ import annotations

import pytest

from fairway.core.regions.addresses import is_address, wrong_addresses


@pytest.mark.parametrize("url", ["http://10.0.0.1:8700", "https://[fd00::1]/below", "http://a"])
def test_an_address_of_a_server(url: str) -> None:
    assert is_address(url)
    assert wrong_addresses(advertised_url=url, public_url=None) == []


@pytest.mark.parametrize(
    "url", ["nonsense", "10.0.0.1:8700", "ftp://a", "http://", "http://a:99999"]
)
def test_what_leads_nowhere_is_told_with_its_setting(url: str) -> None:
    assert not is_address(url)
    (said,) = wrong_addresses(advertised_url=url)
    assert said.startswith(f"FAIRWAY_ADVERTISED_URL is {url!r}: name the address")
