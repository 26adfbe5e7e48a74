"""A worker's hello, and its job types made ready in parts: it may name ten thousand.

Changes no session: what a hello leads to is done by who hears it (`services/workers/exchange.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fairway.core.ids import TypeId
from fairway.core.job_type import TypeFacts
from fairway.runtime.loops import WorkInParts


class Hello(NamedTuple):
    """What a worker says of itself when it begins to speak with an owner."""

    types: dict[str, TypeFacts]  # by name: what it says of each
    slots: dict[str, int]  # pool name → slots in all
    build: str = ""
    limits: dict[str, str] = {}  # limit → what holds it there  # noqa: RUF012  (never changed)
    labels: tuple[str, ...] = ()
    warm_keys: tuple[str, ...] = ()
    #: Type → bounds of its `RetryPolicy` that it asks for.
    retry_bounds: dict[str, dict[str, int]] = {}  # noqa: RUF012  (never changed)


class Greeting(NamedTuple):
    types: set[TypeId]
    policies: dict[TypeId, dict[str, Any]]  # job type → the limits that it asks for
    facts: list[tuple[TypeId, TypeFacts]]  # of those of which it says any


async def read_greeting(said: Hello, type_ids: Mapping[str, TypeId]) -> Greeting:
    """Of the types that have a number. Others have their turns: first all is read, then changed."""
    found, work, no_facts = Greeting(set(), {}, []), WorkInParts(), TypeFacts()
    for name, facts in said.types.items():
        type_id = type_ids.get(name)
        if type_id is None:
            continue  # there was no room for its name
        found.types.add(type_id)
        if asked := said.retry_bounds.get(name):
            found.policies[type_id] = asked
        if facts != no_facts:
            found.facts.append((type_id, facts))
        await work.let_others()
    return found
