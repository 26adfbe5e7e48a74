"""What a hello says of its job types, made ready in parts: a worker may name ten thousand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fairway.core.ids import TypeId
from fairway.core.job_type import TypeFacts
from fairway.runtime.loops import WorkInParts
from fairway.services.sessions.sessions import Hello


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
