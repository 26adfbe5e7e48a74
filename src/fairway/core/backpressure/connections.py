"""Who may keep a connection when there are many: counts and the order of arrival, nothing else.

A connection is unknown until it carries a request with a valid key. Unknown ones are cheap to make
and to lose: whenever room is short, the one that has been unknown longest gives way. What tenants
hold and what is unknown fill at most nine tenths, so that shared workers and operators find room
whatever everybody else does.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Generic, NamedTuple, TypeVar

from fairway.core.ids import TenantId

STAFF = TenantId(-1)  # who is not a tenant's: shared workers, operators, other servers
SHARED_TENTHS = 9  # of all connections, for those that are not staff
TENANT_PART = 4  # one tenant holds at most a fourth of all
AHEAD_MAX = 256  # with requests that wait behind another: of each as much as is read in one go

Connection = TypeVar("Connection")


class ConnectionLimits(NamedTuple):
    total_max: int
    address_max: int  # from one address, staff apart


class ConnectionBook(Generic[Connection]):
    """Every open connection: where it comes from, and for whom it has spoken."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._shared_max = max(1, limits.total_max * SHARED_TENTHS // 10)
        self._tenant_max = max(1, limits.total_max // TENANT_PART)
        self._addresses: dict[Connection, str] = {}
        self._unknown: dict[str, dict[Connection, None]] = {}  # by address, oldest first
        self._queue: dict[Connection, None] = {}  # every unknown one, oldest first
        self._holders: dict[Connection, TenantId] = {}  # a tenant, or STAFF
        self._of_tenant: dict[TenantId, int] = {}
        self._of_address: dict[str, int] = {}
        self._staff = 0

    def __len__(self) -> int:
        return len(self._addresses)

    def holder_of(self, connection: Connection) -> TenantId | None:
        """A tenant, or STAFF; None while it is unknown."""
        return self._holders.get(connection)

    @property
    def unknown(self) -> int:
        return len(self._queue)

    def crowd_at(self, address: str) -> int | None:
        """How many an address has, when it may have no more."""
        count = self._of_address.get(address, 0)
        return count if count >= self._limits.address_max else None

    def arrived(self, connection: Connection, address: str) -> Connection | None:
        """Take it in. Answers who has to be closed for it: an older one, itself, or nobody."""
        self._addresses[connection] = address
        self._of_address[address] = self._of_address.get(address, 0) + 1
        self._unknown.setdefault(address, {})[connection] = None
        self._queue[connection] = None
        leaving = self._leaving(connection, address)
        if leaving is not None:
            self.left(leaving)
        return leaving

    def _leaving(self, newcomer: Connection, address: str) -> Connection | None:
        if self._of_address[address] > self._limits.address_max:
            return next(iter(self._unknown[address]))
        is_full = len(self) > self._limits.total_max
        if not is_full and len(self) - self._staff <= self._shared_max:
            return None
        oldest = next(iter(self._queue))
        # Alone among known ones it may yet prove to be staff, for whom the rest is kept.
        return None if oldest is newcomer and not is_full else oldest

    def proved(self, connection: Connection, holder: TenantId) -> bool:
        """It spoke with a valid key, of this tenant or of STAFF. Answers whether it may stay."""
        address = self._addresses.get(connection)
        if address is None or connection in self._holders:
            return True  # gone already, or known before
        self._forget_unknown(connection, address)
        self._holders[connection] = holder
        if holder == STAFF:
            self._staff += 1
            _less(self._of_address, address)
            return True
        held = self._of_tenant[holder] = self._of_tenant.get(holder, 0) + 1
        return held <= self._tenant_max and len(self) - self._staff <= self._shared_max

    def has_room(self, address: str, holder: TenantId) -> bool:
        """Whether one of this tenant more would be let stay, and nobody be closed for it."""
        return (
            self._of_address.get(address, 0) < self._limits.address_max
            and len(self) < self._limits.total_max
            and len(self) - self._staff < self._shared_max
            and self._of_tenant.get(holder, 0) < self._tenant_max
        )

    def left(self, connection: Connection) -> None:
        """It is closed; said twice, the second time means nothing."""
        address = self._addresses.pop(connection, None)
        if address is None:
            return
        holder = self._holders.pop(connection, None)
        if holder == STAFF:
            self._staff -= 1
            return
        _less(self._of_address, address)
        if holder is None:
            self._forget_unknown(connection, address)
        else:
            _less(self._of_tenant, holder)

    def _forget_unknown(self, connection: Connection, address: str) -> None:
        del self._queue[connection]
        here = self._unknown[address]
        del here[connection]
        if not here:
            del self._unknown[address]


Key = TypeVar("Key")


def _less(counts: dict[Key, int], key: Key) -> None:
    if counts[key] == 1:
        del counts[key]
    else:
        counts[key] -= 1


def address_of(host: str) -> str:
    """What counts as one address: with IPv6 the network of a site, whose hosts cost nothing."""
    if ":" not in host:
        return host
    try:
        found = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped) if mapped else found.packed[:8].hex()
