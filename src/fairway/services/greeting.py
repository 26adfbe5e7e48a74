"""What a hello says of its job types, made ready in parts: a worker may name ten thousand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairway.core.job_type import TypeFacts
from fairway.runtime.loops import WorkInParts
from fairway.services.sessions import TypeTerms

_LIMITS = [(place, name) for place, name in enumerate(TypeTerms._fields) if name.endswith("_max")]


class Greeting(NamedTuple):
    types: set[int]
    policies: dict[int, dict[str, Any]]  # job type → the limits that it asks for
    facts: list[tuple[str, TypeFacts]]  # of those of which it says any


async def read_greeting(said: Sequence[TypeTerms], type_ids: Mapping[str, int]) -> Greeting:
    """Others have their turns in between: nothing is changed before all of it was read."""
    found, work, no_facts = Greeting(set(), {}, []), WorkInParts(), TypeFacts()
    for terms in said:
        type_id = type_ids[terms.name]
        found.types.add(type_id)
        asked = {name: terms[place] for place, name in _LIMITS if terms[place] is not None}
        if asked:
            found.policies[type_id] = asked
        if terms.facts != no_facts:
            found.facts.append((terms.name, terms.facts))
        await work.let_others()
    return found
