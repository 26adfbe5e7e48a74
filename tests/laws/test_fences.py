"""Whoever writes jobs for a shard proves in the same statement that he owns it."""

from __future__ import annotations

import re

from tests.laws.source import QUERIES

from fairway.store.sql import load

STATEMENTS = {
    name: " ".join(statement.text.split())
    for path in sorted(QUERIES.glob("*.sql"))
    for name, statement in load(path.name).items()
}
#: The row is held against a claim, which changes the term, and not against a renewal.
FENCE = re.compile(
    r"EXISTS \(SELECT FROM shards WHERE shard = \$\d+ AND term = \$\d+ FOR KEY SHARE\)"
)
#: The same for rows of several shards: each is written only if its own is held.
FENCES = re.compile(
    r"AND (?:done|lease)\.shard = ANY \(ARRAY\( SELECT held\.shard FROM unnest\(\$\d+::int\[\],"
    r" \$\d+::bigint\[\]\) AS owned \(shard, term\) CROSS JOIN LATERAL \( SELECT shards\.shard FROM"
    r" shards WHERE shard = owned\.shard AND term = owned\.term FOR KEY SHARE \) AS held\)\)"
)
CHANGES_JOBS = re.compile(r"\b(UPDATE|DELETE FROM|MERGE INTO) jobs\b")
#: Of jobs that no owner has in hand: they wait for others, and whoever hands jobs in may let them
#: go; or of a column that no owner decides on. What ends a member before them is fenced.
OF_ANY_SERVER = {"release", "give_up", "join_flow"}


def test_every_change_of_a_job_has_the_fence() -> None:
    changes = {name for name, text in STATEMENTS.items() if CHANGES_JOBS.search(text)}
    changes -= OF_ANY_SERVER
    assert len(changes) >= 11
    unfenced = {
        name
        for name in changes
        if not (FENCE.search(STATEMENTS[name]) or FENCES.search(STATEMENTS[name]))
    }
    assert unfenced == set()


def test_a_fence_holds_no_renewal_up() -> None:
    locks = {
        name: set(re.findall(r"FOR (?:NO )?(?:KEY )?(?:SHARE|UPDATE)", text))
        for name, text in STATEMENTS.items()
        if "FROM shards" in text
    }
    assert locks.pop("claim_shards") == locks.pop("stand_in") == {"FOR UPDATE"}
    assert locks.pop("renew_shards") == locks.pop("release_shards") == {"FOR NO KEY UPDATE"}
    for name in (
        "read_owners",
        "read_shards",
        "list_shards",
        "count_open",
        "unowned_shards",
        "terms_in_force",
        "list_servers",
        "give_away",
    ):
        assert locks.pop(name) == set()
    assert {name for name, lock in locks.items() if lock != {"FOR KEY SHARE"}} == set()
