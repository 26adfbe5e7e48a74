"""Who keeps a connection: bounds that always hold, and nobody with a key shut out by strangers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.properties import tried

from fairway.core.backpressure.connections import (
    STAFF,
    ConnectionBook,
    ConnectionLimits,
    address_of,
)
from fairway.core.ids import TenantId

LIMITS = ConnectionLimits(total_max=20, address_max=8)


class Crowd(RuleBasedStateMachine):
    """Connections come, prove to be somebody's, and go, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.book: ConnectionBook[int] = ConnectionBook(LIMITS)
        self.count = 0
        self.open: dict[int, tuple[str, int | None]] = {}  # address; a tenant, STAFF or nobody

    @rule(address=st.sampled_from("abcde"))
    def arrive(self, address: str) -> None:
        self.count += 1
        self.open[self.count] = (address, None)
        leaving = self.book.arrived(self.count, address)
        if leaving is not None:
            assert self.open[leaving][1] is None, "who is known never gives way"
            same = [one for one, (a, holder) in self.open.items() if holder is None]
            if len(self.of_address(address)) > LIMITS.address_max:
                same = [one for one in same if self.open[one][0] == address]
            assert leaving == min(same), "the oldest gives way"
            del self.open[leaving]

    @precondition(lambda self: self.open)
    @rule(data=st.data(), holder=st.sampled_from([STAFF, 1, 2]))
    def prove(self, data: st.DataObject, holder: int) -> None:
        one = data.draw(st.sampled_from(sorted(self.open)))
        if self.open[one][1] is None:
            may_stay = self.book.proved(one, TenantId(holder))
            self.open[one] = (self.open[one][0], holder)
            assert may_stay or holder != STAFF, "staff may always stay"
            if not may_stay:
                self.leave(one)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def go(self, data: st.DataObject) -> None:
        self.leave(data.draw(st.sampled_from(sorted(self.open))))

    def leave(self, one: int) -> None:
        self.book.left(one)
        self.book.left(one)  # said twice
        del self.open[one]

    def of_address(self, address: str) -> list[int]:
        return [one for one, (a, holder) in self.open.items() if a == address and holder != STAFF]

    @invariant()
    def bounds_hold(self) -> None:
        assert len(self.book) == len(self.open) <= LIMITS.total_max
        strangers = [one for one, (_, holder) in self.open.items() if holder is None]
        assert self.book.unknown == len(strangers)
        for address in "abcde":
            assert len(self.of_address(address)) <= LIMITS.address_max
        for tenant in (1, 2):
            held = [one for one, (_, holder) in self.open.items() if holder == tenant]
            assert len(held) <= LIMITS.total_max // 4

    @invariant()
    def staff_finds_room(self) -> None:
        """Unless staff itself fills the house, one more from a quiet place can come and prove."""
        staff = [one for one, (_, holder) in self.open.items() if holder == STAFF]
        if len(staff) <= LIMITS.total_max // 10 and not self.of_address("quiet"):
            leaving = self.book.arrived(0, "quiet")
            assert leaving != 0
            if leaving is not None:
                del self.open[leaving]
            self.book.left(0)


TestCrowd = Crowd.TestCase
TestCrowd.settings = tried(30, stateful_step_count=40)


@given(st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1))
def test_a_site_is_one_address(one: int, other: int) -> None:
    hosts = [
        f"2001:db8:0:1:{':'.join(f'{n:016x}'[i : i + 4] for i in (0, 4, 8, 12))}"
        for n in (one, other)
    ]
    assert len({address_of(host) for host in hosts}) == 1
    assert address_of("2001:db8:0:2::1") != address_of(hosts[0])


def test_other_addresses_are_what_they_are() -> None:
    assert address_of("192.0.2.7") == "192.0.2.7" == address_of("::ffff:192.0.2.7")
    assert address_of("fe80::1%eth0") == address_of("fe80::2%eth1")
    assert address_of("no:address") == "no:address"
