"""Who takes connections without standing in a tenant's line: loops, groups, and the house itself.

What one request causes goes through `turns.py` to the hot connections, and by `quick`, `slow` or
`asked` to those for people: else whoever sends many requests has all connections, and the others
wait. A new name here needs a reason why no number of requests makes many of its uses at a time.
"""

from __future__ import annotations

import ast

from tests.laws.source import trees

HOT = {
    # one loop each
    "services/lateness.py", "services/ownership.py", "services/probes.py", "services/promoter.py",
    "services/refiller.py", "services/rescuer.py", "services/share_keeper.py",
    "services/sweeper.py", "services/ticker.py",
    # groups: who comes meanwhile shares the next one
    "services/job_reader.py", "services/row_writer.py", "services/submission.py",
    # in turn
    "services/turns.py",
    # once, at the start
    "services/schema.py",
    "bench/store_alone.py",
}  # fmt: skip

PEOPLE = {
    # operators, and keys one at a time
    "services/directory.py", "services/registry.py",
    # workers, each in its place
    "services/checkpoints.py",
    # groups
    "services/type_names.py",
    # the house itself
    "services/readiness.py", "services/schema.py", "services/storage_tie.py",
    # behind a tenant's place
    "store/database.py",
}  # fmt: skip


def users_of(pool: str) -> set[str]:
    return {
        name
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == pool
    }


def test_requests_take_turns_at_the_hot_connections() -> None:
    assert users_of("hot") == HOT


def test_tenants_stand_in_line_for_the_connections_of_people() -> None:
    assert users_of("people") == PEOPLE
