"""Where a request comes from: the connection, or whoever a trusted proxy or server names."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.api.origin import networks, origin_of, passing_on, speaker

TRUSTED = networks("10.0.0.0/8, 2001:db8::1")


@pytest.mark.parametrize(
    ("peer", "said", "who"),
    [
        ("192.0.2.7", "", "192.0.2.7"),
        ("192.0.2.7", "203.0.113.9", "192.0.2.7"),  # nobody that we trust says so
        ("10.1.2.3", "203.0.113.9", "203.0.113.9"),
        ("10.1.2.3", "198.51.100.1, 203.0.113.9", "203.0.113.9"),  # told by it
        ("10.1.2.3", "203.0.113.9, 10.9.9.9", "203.0.113.9"),  # through two of ours
        ("10.1.2.3", "10.9.9.9", "10.9.9.9"),
        ("10.1.2.3", "<script>", "10.1.2.3"),
        ("2001:db8::1", "203.0.113.9", "203.0.113.9"),
        ("", "203.0.113.9", ""),
    ],
)  # fmt: skip
def test_who_speaks(peer: str, said: str, who: str) -> None:
    assert speaker(peer, said, TRUSTED) == who


def scope(*headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"client": ("192.0.2.7", 1), "headers": list(headers)}


def test_a_request_that_is_passed_on_keeps_its_origin() -> None:
    first = scope()
    origin = origin_of(first, "secret", "")
    assert origin_of(first, "secret", "") == origin  # one id for one request
    assert origin_of(scope(*passing_on(first, "secret", "")), "secret", "") == origin
    forged = origin_of(scope(*passing_on(first, "guess", "")), "secret", "")
    assert forged.address == "192.0.2.7"
    assert forged.request_id != origin.request_id
