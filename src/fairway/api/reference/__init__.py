"""Every public operation of the API, as data: what `/openapi.json` and `/docs` are made from.

Nothing here is executed when a request comes in; a test holds the table against the routes.
"""

from __future__ import annotations

import re

from fairway.api.reference.failures import FAILURES
from fairway.api.reference.jobs import JOBS
from fairway.api.reference.machines import MACHINES
from fairway.api.reference.operators import OPERATORS
from fairway.api.reference.schedules import SCHEDULES
from fairway.api.reference.shape import Group, Operation
from fairway.api.reference.workers import WORKERS

GROUPS: tuple[Group, ...] = (JOBS, SCHEDULES, FAILURES, WORKERS, OPERATORS, MACHINES)
OPERATIONS: tuple[Operation, ...] = tuple(op for group in GROUPS for op in group.operations)


def allowed_methods(path: str) -> list[str]:
    """The methods that a path takes; none for a path that there is not."""
    named = {op.method for op in OPERATIONS if op.path == path}
    found = named or {op.method for op in OPERATIONS if _PATTERNS[op.path].fullmatch(path)}
    return sorted(found | {"HEAD"} if "GET" in found else found)


_PATTERNS = {op.path: re.compile(re.sub(r"\{\w+\}", "[^/]+", op.path)) for op in OPERATIONS}

#: Paths that are names from end to end, with their methods: none of them is ever taken for an id.
NAMED: dict[str, frozenset[str]] = {
    op.path: frozenset(allowed_methods(op.path)) for op in OPERATIONS if "{" not in op.path
}
