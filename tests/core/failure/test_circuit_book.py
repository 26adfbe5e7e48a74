"""How many circuits a tenant has, whatever its workers say its jobs lean on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.failure import circuit_book
from fairway.core.failure.circuit_book import (
    CIRCUITS_MAX,
    DEPENDENCIES_MAX,
    NAMED_MAX,
    OTHER,
    CircuitBook,
)
from fairway.core.failure.circuits import SECOND_US, Circuit, CircuitSettings
from fairway.core.ids import TenantId, TypeId

TENANT = TenantId(1)
SETTINGS = CircuitSettings(window_us=10 * SECOND_US, calls_min=2)
LATER_US = 60 * SECOND_US


def failed(
    book: CircuitBook, type_: int, dependency: str, now_us: int = 0, *, tenant: int = TENANT
) -> Circuit | None:
    """A call of this dependency failed; its circuit, if it has one."""
    name = book.name_of(TenantId(tenant), TypeId(type_), dependency)
    if name is None:
        return None
    circuit = book.of_type(TenantId(tenant), TypeId(type_)).get(name) or Circuit(SETTINGS)
    book.put(TenantId(tenant), TypeId(type_), name, circuit)
    circuit.failed(now_us)
    return circuit


def names(book: CircuitBook, tenant: int = TENANT) -> Iterator[tuple[int, str]]:
    return ((type_, name) for type_, named in book.of_tenant(TenantId(tenant)) for name in named)


def test_the_seventeenth_dependency_of_a_type_shares_a_circuit() -> None:
    book = CircuitBook()
    for number in range(DEPENDENCIES_MAX + 5):
        failed(book, 7, f"d{number}")
    assert sorted(name for _, name in names(book)) == sorted(
        [OTHER, *(f"d{number}" for number in range(DEPENDENCIES_MAX))]
    )


def test_types_share_theirs_once_a_tenant_has_very_many() -> None:
    book = CircuitBook()
    for type_ in range(1, 3 * CIRCUITS_MAX):
        for number in range(3):
            circuit = failed(book, type_, f"d{number}")
            assert (circuit is None) == (type_ not in dict(book.of_tenant(TENANT)))
    found = [name for _, name in names(book)]
    assert len(found) == book.count(TENANT) == CIRCUITS_MAX
    assert len(found) - found.count(OTHER) == NAMED_MAX
    own = failed(book, 1, "d0")
    assert own is book.of_type(TENANT, TypeId(1))["d0"], "what has one keeps it"
    assert failed(book, 1, "d0", tenant=2) is book.of_type(TenantId(2), TypeId(1))["d0"], (
        "others have their own"
    )


def test_room_that_is_given_up_is_used_again() -> None:
    book = CircuitBook()
    for type_ in range(CIRCUITS_MAX + 1):
        failed(book, type_, "d")
    kept = book.of_type(TENANT, TypeId(0))["d"]
    kept.failed(0)
    assert kept.is_open
    book.forget_idle(TENANT, LATER_US)
    assert list(names(book)) == [(0, "d")], "one that is open is not forgotten"
    assert failed(book, CIRCUITS_MAX + 1, "d", LATER_US) is not None
    kept.close()
    book.forget_idle(TENANT, 2 * LATER_US)
    assert TENANT not in book
    assert (book.tenants(), book.count(TENANT)) == ([], 0)


DEEDS = st.lists(st.tuples(st.integers(1, 2), st.integers(1, 4), st.integers(0, 4)), max_size=60)


@given(DEEDS)
def test_the_count_is_what_there_is(deeds: list[tuple[int, int, int]]) -> None:
    book = CircuitBook()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(circuit_book, "DEPENDENCIES_MAX", 2)
        patch.setattr(circuit_book, "NAMED_MAX", 4)
        patch.setattr(circuit_book, "CIRCUITS_MAX", 6)
        for second, (tenant, type_, number) in enumerate(deeds):
            now_us = 3 * second * SECOND_US
            if number:
                failed(book, type_, f"d{number}", now_us, tenant=tenant)
            else:
                book.forget_idle(TenantId(tenant), now_us)
            for each in map(TenantId, (1, 2)):
                assert len(list(names(book, each))) == book.count(each) <= 6
                assert (each in book) == (each in book.tenants()) == bool(book.count(each))
