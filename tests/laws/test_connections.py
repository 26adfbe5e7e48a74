"""Who takes connections without standing in a tenant's line: loops, groups, and the house itself.

What one request causes goes through `services/backpressure/connection_turns.py` to the hot
connections, and by `quick`, `slow` or `asked` to those for people: else whoever sends many requests
has all connections, and the others wait. A new name here needs a reason why no number of requests
makes many of its uses at a time.
"""

from __future__ import annotations

import ast

from tests.laws.source import PACKAGE, trees, walk

HOT = {
    # one loop each
    "services/scheduling/expirer.py", "services/ownership/takeover.py",
    "services/restraints/probes.py", "services/scheduling/promoter.py",
    "services/dispatch/refiller.py", "services/workers/rescuer.py",
    "services/dispatch/fair_share_loop.py", "services/ownership/rate_hand_over.py",
    "services/dispatch/backlog_reconciler.py", "services/scheduling/ticker.py",
    "services/submit/outbox.py", "services/events/sequencer.py", "services/dispatch/pulls.py",
    "services/busy_shards.py",
    # groups: who comes meanwhile shares the next one
    "services/jobs/job_reader.py", "services/recording/row_writer.py",
    "services/submit/submission.py", "services/recording/lease_writer.py",
    # in turn
    "services/backpressure/connection_turns.py",
    # once, at the start
    "services/database_proofs.py",
    "bench/store_alone.py",
}  # fmt: skip

PEOPLE = {
    # operators, and keys one at a time
    "services/registry/tenant_states.py", "services/registry/shard_count.py",
    "services/registry/tenant_moves.py", "services/registry/spread_tenants.py",
    "services/registry/tenants_and_keys.py", "services/registry/job_types.py",
    "services/registry/key_lookup.py",
    "services/registry/sign_ins.py", "services/registry/visits.py",
    "services/insight/alarms.py", "services/insight/marks.py",
    "services/insight/server_list.py",
    # workers, each in its place
    "services/object_storage/checkpoints.py",
    # groups
    "services/registry/type_names.py",
    # operators, and calls of other regions
    "services/regions/failover.py", "services/regions/held.py", "services/regions/regions.py",
    # the house itself
    "services/readiness.py", "services/database_proofs.py",
    "services/object_storage/storage_binding.py",
    # behind a tenant's place
    "store/connections/database.py",
}  # fmt: skip


def users_of(pool: str) -> set[str]:
    return {
        name
        for name, tree in trees().items()
        for node in walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == pool
    }


def test_requests_take_turns_at_the_hot_connections() -> None:
    assert users_of("hot") == HOT


def test_tenants_stand_in_line_for_the_connections_of_people() -> None:
    assert users_of("people") == PEOPLE


#: Who waits for an advisory lock: a migrator asks and says what it waits for. Any login of the
#: database can take one, so what tenants' jobs wait for are locks on our own rows and tables.
ADVISORY = {"store/schema/migrate.py"}


def test_no_login_of_the_database_holds_a_lock_that_we_wait_for() -> None:
    found = {
        str(file.relative_to(PACKAGE))
        for kind in ("py", "sql")
        for file in PACKAGE.rglob(f"*.{kind}")
        if "advisory_" in file.read_text()
    }
    assert found <= ADVISORY
