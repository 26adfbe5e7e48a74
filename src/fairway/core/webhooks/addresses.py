"""Where a webhook may point: not into the network that the server itself stands in.

A tenant chooses the address and the platform makes the call, so without these rules a tenant could
reach what only the platform's own machines may: metadata of a cloud, databases, other servers. Two
questions, both pure: is this text an address we would ever call (`checked_url`), and is this number
that its name resolved to one of the public internet (`refusal_of`)? The second is asked of every
number, when a webhook is made and again before every call; the call then goes to exactly the number
that was asked about.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple, TypeAlias

from fairway.core.errors import InvalidRequest

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

URL_CHARACTERS_MAX = 2048
NAME_CHARACTERS_MAX = 253
PORT_FREE_MIN = 1024
PORTS_BELOW = (80, 443)
#: Above 1024, and still no place for a webhook: databases, brokers and doors of other machines.
PORTS_REFUSED = frozenset(
    {
        1099, 1433, 1434, 1521, 1723, 1883, 2049, 2181, 2375, 2376, 2377, 2379, 2380, 3268, 3269,
        3306, 3389, 4369, 4444, 5060, 5061, 5432, 5433, 5671, 5672, 5900, 5901, 5984, 5985, 5986,
        6000, 6379, 6380, 6432, 6443, 6566, 6665, 6666, 6667, 6668, 6669, 6697, 7199, 7687, 8086,
        8300, 8301, 8500, 8501, 8600, 8700, 9042, 9092, 9093, 9100, 9160, 9200, 9300, 10080, 10250,
        10255, 10256, 11211, 15672, 25672, 26257, 26379, 27017, 27018, 27019, 50070,
    }
)  # fmt: skip

_URL = re.compile(r"(https?)://([^/?#]*)((?:[/?][^#]*)?)", re.IGNORECASE)
_VISIBLE = re.compile(r"[!-~]+")
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:]*)(?::([0-9]{1,5}))?")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")

#: Not for us, whatever the tables of a Python say of them: ways around, and doors of clouds.
_NEVER = tuple(
    ip_network(text)
    for text in (
        "168.63.129.16/32",  # Azure's, on every machine of it
        "192.88.99.0/24",  # relays from the old protocol to the new
        "::/96",  # the old protocol in the new one, long given up
        "2001::/32",  # Teredo
        "2002::/16",  # 6to4
        "64:ff9b:1::/48",  # a network's own translation
        "3fff::/20",
        "5f00::/16",
        "fec0::/10",
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")
_LOW_32 = (1 << 32) - 1
_LOW_64 = (1 << 64) - 1
_ISATAP = (0x00005EFE, 0x02005EFE)  # the upper half of such an interface's name


class AddressRules(NamedTuple):
    """What an operator allows beyond the public internet by TLS."""

    allow_http: bool = False
    private_networks: tuple[Network, ...] = ()


class Target(NamedTuple):
    """The parts of a webhook's address."""

    scheme: str
    host: str  # a name, or a number without brackets
    port: int
    path: str  # with the query

    @property
    def is_tls(self) -> bool:
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """What the Host header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = 443 if self.is_tls else 80
        return host if self.port == usual else f"{host}:{self.port}"

    @property
    def number(self) -> str | None:
        """Its host, where that is a number; a name has to be looked up."""
        return self.host if _is_number(self.host) else None


def checked_url(text: str, rules: AddressRules) -> Target:
    """Refuses what is no address of a receiver, or is spelt so that two readers might differ."""
    if len(text) > URL_CHARACTERS_MAX:
        raise _refused(f"The address has over {URL_CHARACTERS_MAX} characters.")
    if not _VISIBLE.fullmatch(text) or "\\" in text:
        raise _refused(
            "The address has characters that no URL has: spell a name of other letters with xn--,"
            " and what is special with %."
        )
    found = _URL.fullmatch(text)
    if found is None:
        raise _refused("The address is to be https://host/path, without a #fragment.")
    scheme = found[1].lower()
    if scheme == "http" and not rules.allow_http:
        raise _refused("The address is to begin with https://: what is sent may be read by others.")
    host, port = _authority(found[2], 443 if scheme == "https" else 80)
    path = found[3] if found[3].startswith("/") else f"/{found[3]}"
    target = Target(scheme, host, port, path)
    if target.number is not None and (why := refusal_of(target.number, rules)):
        raise _refused(why)
    return target


def _authority(text: str, usual_port: int) -> tuple[str, int]:
    if "@" in text:
        raise _refused("The address must not hold a name or password before the host.")
    found = _AUTHORITY.fullmatch(text)
    if found is None or not found[1]:
        raise _refused("The address names no host that could be called.")
    port = usual_port if found[2] is None else int(found[2])
    if not _may_be_port(port):
        raise _refused(
            f"Port {port} is not one that webhooks are sent to: use 443, or one from"
            f" {PORT_FREE_MIN} on that is no well-known service's."
        )
    return _host(found[1].lower()), port


def _may_be_port(port: int) -> bool:
    if port < PORT_FREE_MIN:
        return port in PORTS_BELOW
    return port <= 65535 and port not in PORTS_REFUSED


def _host(text: str) -> str:
    if text.startswith("["):
        try:
            return str(IPv6Address(text[1:-1]))
        except ValueError:
            raise _refused("What stands in [] is no address of IPv6.") from None
    labels = text.split(".")
    if _NUMERIC.fullmatch(labels[-1]):  # readers differ on 127.1, 0177.0.0.1 and 0x7f000001
        try:
            return str(IPv4Address(text))
        except ValueError:
            raise _refused("A host of digits is to be four plain numbers, as 192.0.2.7.") from None
    if len(text) > NAME_CHARACTERS_MAX or not all(map(_LABEL.fullmatch, labels)):
        raise _refused(
            "The host is no name: letters, digits and hyphens with single dots between, and none"
            " at the end."
        )
    return text


def _is_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def refusal_of(number: str, rules: AddressRules) -> str:
    """Why this number is not called, as a sentence; empty: it may be."""
    try:
        address = ip_address(number)
    except ValueError:
        return f"{number[:64]!r} is no address."
    inner = _inner(address)
    if any(_is_in(one, network) for one in (address, inner) for network in rules.private_networks):
        return ""
    if _is_public(address) and _is_public(inner):
        return ""
    return (
        f"{address} is not an address of the public internet: webhooks are not sent into private"
        " networks."
    )


def _inner(address: Address) -> Address:
    """The address of the old protocol that one of the new stands for, where it does."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64 or (int(address) & _LOW_64) >> 32 in _ISATAP:
        return IPv4Address(int(address) & _LOW_32)
    return address


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return False
        if address.ipv4_mapped is not None or address in _NAT64:
            return True  # what it stands for is asked, too
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(_is_in(address, network) for network in _NEVER)
    )


def _is_in(address: Address, network: Network) -> bool:
    return address.version == network.version and address in network


def parsed_networks(text: str) -> tuple[Network, ...]:
    """`127.0.0.0/8,::1/128`; raises ValueError, with what is wrong, for what is no such list."""
    return tuple(ip_network(one.strip()) for one in text.split(",") if one.strip())


def _refused(why: str) -> InvalidRequest:
    return InvalidRequest(why, field="/url")
