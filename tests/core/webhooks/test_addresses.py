"""Where a webhook may point: every way into a private network that is known is refused."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.errors import InvalidRequest
from fairway.core.webhooks.addresses import (
    AddressRules,
    checked_url,
    parsed_networks,
    refusal_of,
)

STRICT = AddressRules()
HOME = AddressRules(allow_http=True, private_networks=parsed_networks("127.0.0.0/8, ::1/128"))

PRIVATE = (
    "0.0.0.0", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.0.1",
    "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1",
    "192.88.99.1", "192.168.1.1", "198.18.0.1", "224.0.0.1", "224.0.1.1", "240.0.0.1",
    "255.255.255.255",
    "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
    "64:ff9b::7f00:1", "64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b:1::1",
    "2001::1", "2001:db8::1", "2002:7f00:1::", "2002:0a00:1::", "2002:a9fe:a9fe::",
    "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "100::1",
    "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:127.0.0.1",
)  # fmt: skip
PUBLIC = ("8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8")


@pytest.mark.parametrize("number", PRIVATE)
def test_no_number_of_a_private_network_is_called(number: str) -> None:
    assert "public internet" in refusal_of(number, STRICT)


@pytest.mark.parametrize("number", PUBLIC)
def test_numbers_of_the_public_internet_are(number: str) -> None:
    assert refusal_of(number, STRICT) == ""


@pytest.mark.parametrize("number", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_an_operator_may_allow_a_network_and_no_other(number: str) -> None:
    assert refusal_of(number, HOME) == ""
    assert refusal_of("10.0.0.1", HOME)
    assert refusal_of("::ffff:10.0.0.1", HOME)


@given(st.integers(0, (1 << 32) - 1))
def test_a_number_is_judged_alike_in_every_disguise(number: int) -> None:
    plain = IPv4Address(number)
    is_refused = bool(refusal_of(str(plain), STRICT))
    for base in (0xFFFF << 32, 0x64FF9B << 96):  # mapped, and translated
        assert bool(refusal_of(str(IPv6Address(base | number)), STRICT)) == is_refused
    assert refusal_of(str(IPv6Address(0x2002 << 112 | number << 80)), STRICT)


@pytest.mark.parametrize(
    "url",
    [
        *(f"https://[{one}]/" for one in PRIVATE if ":" in one and "%" not in one),
        *(f"https://{one}/" for one in PRIVATE if ":" not in one),
        "https://0x7f000001/", "https://2130706433/", "https://0177.0.0.1/", "https://127.1/",
        "https://127.0.1/", "https://0x7f.0.0.1/", "https://127.0.0.0x1/", "https://8.8.8.08/",
        "https://1.2.3.4./", "https://localhost./", "https://example.com./",
        "https://ⓔxample.com/", "https://example。com/", "https://１２７.0.0.1/", "https://еxample.com/",
        "https://user@example.com/", "https://user:word@example.com/", "https://@example.com/",
        "https://example.com\\@10.0.0.1/", "https://10.0.0.1#@example.com/",
        "https://example.com/#part", "https://exa mple.com/", "https://example.com/a b",
        "https://example.com/\r\nhost: 10.0.0.1", "https://example.com/\x00", "https://%31%30.0.0.1/",
        "https://example.com:22/", "https://example.com:25/", "https://example.com:5432/",
        "https://example.com:6379/", "https://example.com:0/", "https://example.com:65536/",
        "https://example.com:/", "https://example.com:443:443/", "https://example.com:8080x/",
        "http://example.com/", "file:///etc/passwd", "gopher://example.com/", "ftp://example.com/",
        "javascript:alert(1)", "https:example.com", "https:/example.com", "//example.com/",
        "https://", "https:///path", "https://.example.com/", "https://a..b/", "https://-a.example/",
        "https://[::1", "https://[fe80::1%25eth0]/", "https://[::g]/", "https://[]/", "",
        "https://" + "a" * 64 + ".com/", "https://example.com/" + "a" * 2048,
    ],
)  # fmt: skip
def test_what_is_no_address_of_a_receiver_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        checked_url(url, STRICT)
    assert refusal.value.field == "/url"


@pytest.mark.parametrize(
    ("url", "authority", "path"),
    [
        ("https://example.com", "example.com", "/"),
        ("HTTPS://Example.COM:443/a?b=%20c", "example.com", "/a?b=%20c"),
        ("https://example.com?b", "example.com", "/?b"),
        ("https://a.b-c.xn--p1ai:8443/x", "a.b-c.xn--p1ai:8443", "/x"),
        ("https://8.8.8.8:8080/", "8.8.8.8:8080", "/"),
        ("https://[2606:4700:0::1111]/", "[2606:4700::1111]", "/"),
    ],
)
def test_an_address_is_taken_apart_in_one_way(url: str, authority: str, path: str) -> None:
    target = checked_url(url, STRICT)
    assert (target.authority, target.path, target.is_tls) == (authority, path, True)


def test_plain_http_is_for_those_who_allow_it() -> None:
    target = checked_url("http://127.0.0.1:40123/hook", HOME)
    assert (target.number, target.port, target.is_tls) == ("127.0.0.1", 40123, False)


def test_a_list_of_networks_is_read_or_refused() -> None:
    assert parsed_networks("") == ()
    assert [str(one) for one in parsed_networks("10.0.0.0/8,fd00::/8")] == [
        "10.0.0.0/8",
        "fd00::/8",
    ]
    for wrong in ("10.0.0.1/8", "anything", "10.0.0.0/8;::1/128"):
        with pytest.raises(ValueError):
            parsed_networks(wrong)
