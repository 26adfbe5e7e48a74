"""What the server keeps of a job type, made of what a worker or an operator says; and told again.

Most of it has one name and one meaning on the wire and in the record, and is carried by its name:
a new option of that kind needs no line here. The others the caller translates: a pool's name is a
number in the record, a schema is text, and people count seconds.
"""

from __future__ import annotations

from typing import Any

from fairway.core.ids import PoolId
from fairway.core.job_type import TypeFacts
from fairway.wire.job_type import TypeSettings, TypeTerms

_TRANSLATED = {"pool", "timeout_ms", "attempts_max", "schema"}
AS_SAID = tuple(name for name in TypeFacts._fields if name not in _TRANSLATED)


def facts_of(
    said: TypeTerms | TypeSettings,
    *,
    pool: PoolId | None,
    timeout_ms: int | None,
    attempts_max: int | None,
    schema: bytes | None,
) -> TypeFacts:
    carried: dict[str, Any] = {name: getattr(said, name) for name in AS_SAID}
    return TypeFacts(
        pool=pool, timeout_ms=timeout_ms, attempts_max=attempts_max, schema=schema, **carried
    )


def as_said(facts: TypeFacts) -> dict[str, Any]:
    """What is told as it is kept, by field."""
    return {name: getattr(facts, name) for name in AS_SAID}
