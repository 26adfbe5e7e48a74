"""What is said of a job type is what is kept of it, and what is told again."""

from __future__ import annotations

import pytest

from fairway.api.type_facts import AS_SAID, as_said, facts_of
from fairway.core.ids import PoolId
from fairway.core.job_type import TypeFacts
from fairway.wire.job_type import TypeSettings, TypeTerms, TypeView


@pytest.mark.parametrize("kind", [TypeTerms, TypeSettings, TypeView])
def test_whatever_is_kept_can_be_said_and_is_told(kind: type) -> None:
    """A field of the record that nobody can say, or that nobody is told, is a mistake in a name."""
    other_names = {"timeout_ms": "timeout_seconds", "attempts_max": "attempts"}
    fields = set(kind.__struct_fields__)  # type: ignore[attr-defined]  # of every struct
    unsaid = {one for one in TypeFacts._fields if not {one, other_names.get(one)} & fields}
    assert unsaid == set()


@pytest.mark.parametrize("kind", [TypeTerms, TypeSettings])
def test_what_has_one_name_everywhere_is_carried_by_it(kind: type[TypeTerms]) -> None:
    words = {name: f"some {name}" for name in AS_SAID}
    said = kind(**({"name": "a.type"} if kind is TypeTerms else {}), **words)  # type: ignore[arg-type]
    facts = facts_of(said, pool=PoolId(2), timeout_ms=3, attempts_max=4, schema=b"{}")
    assert as_said(facts) == words
    assert (facts.pool, facts.timeout_ms, facts.attempts_max, facts.schema) == (2, 3, 4, b"{}")
