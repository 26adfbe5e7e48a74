"""Connections that know PostgreSQL's own types from each other, and ask of each type once.

The driver must know what an array holds before it can send one, and every connection asks the
server anew, on its first statement with an `int[]`: a question over the whole catalogue, which
takes as long as all else that a server of ours asks when it starts. The types that every PostgreSQL
is born with are the same in all databases for ever, so what one connection of this process was
told, the others need not ask. Types that were made in a database are not remembered: their numbers
mean something else in the next one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

import asyncpg

from fairway.store.connections.node_errors import HearsNodes
from fairway.store.connections.placement import Placement

#: Numbers below it are given by hand in PostgreSQL's source (`FirstGenbkiObjectId`).
MADE_NUMBERS_MIN = 10_000

_told: dict[int, list[Any]] = {}  # by a type's number: it, and what it consists of


Kind = TypeVar("Kind", bound="TypedConnection")


class Remembered(NamedTuple):
    """In place of a statement that was not run; its name says that it was no nameless one, which
    would have taken the place of the caller's."""

    name: str = "remembered"


class TypedConnection(asyncpg.Connection):  # type: ignore[misc]  # the driver ships no types
    placement: Placement | None = None  # where shards lie on a distributed store

    async def _introspect_types(
        self, typeoids: Iterable[int], timeout: float | None
    ) -> tuple[list[Any], Any]:
        """The driver's own question; should it be named otherwise one day, this is never called."""
        numbers = sorted(typeoids)
        if max(numbers) >= MADE_NUMBERS_MIN:
            found: tuple[list[Any], Any] = await super()._introspect_types(numbers, timeout)
            return found
        statement: Any = Remembered()
        for number in numbers:
            if number not in _told:
                rows, statement = await super()._introspect_types([number], timeout)
                _told[number] = rows
        return [row for number in numbers for row in _told[number]], statement


def placed_by(kind: type[Kind], where: Placement | None) -> type[Kind]:
    """Connections of one store: the driver makes them, so what they know is in their class."""
    if where is None:
        return kind
    return type(kind.__name__, (HearsNodes, kind), {"placement": where})
