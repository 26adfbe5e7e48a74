"""The tables that go along when a tenant is moved to another shard: the one list of them.

Every statement of a move is made from it (`queries/tenant_moves.sql`), so a table that is new is
one line here. A table goes in parts, by the columns of its key that follow shard and tenant; those
with a row or a few go whole. Moves nothing: `store/registry/tenant_moves.py` does.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from fairway.core.ids import LOWEST_JOB_ID

_LOWEST: dict[str, str | int] = {
    "text": "",
    "bytea": "",
    "uuid": LOWEST_JOB_ID,
    "bigint": -9_223_372_036_854_775_808,
    "timestamptz": "-infinity",
}


class MovedTable(NamedTuple):
    name: str
    walked_by: dict[str, str]  # column → type: what is alike in all of them goes together
    rest_of_key: tuple[str, ...] = ()

    @property
    def start(self) -> str:
        """Where a walk begins; what has been walked up to is told in the same form."""
        return json.dumps([_LOWEST[kind] for kind in self.walked_by.values()])

    def words(self) -> dict[str, str]:
        """What stands for `{…}` in a statement that is made for each table."""
        columns = list(self.walked_by)
        after = [
            f"(:after::text::jsonb ->> {place})::{kind}"
            for place, kind in enumerate(self.walked_by.values())
        ]
        return {
            "table": self.name,
            "key": ", ".join(columns),
            "key_falling": ", ".join(f"{one} DESC" for one in columns),
            "late_key": ", ".join(f"late.{one}" for one in columns),
            "after": ", ".join(after),
            "is_kept": " AND ".join(
                f"kept.{one} = late.{one}" for one in (*columns, *self.rest_of_key)
            ),
        }


def _by_id(name: str) -> MovedTable:
    return MovedTable(name, {"id": "uuid"})


#: In the order in which they go. Up to checkpoints they make jobs, or end them, or are cleared away
#: as of a job that is no more: none of them stays behind its jobs.
IN_PARTS = (
    MovedTable("schedules", {"name": "text"}),
    MovedTable("schedule_runs", {"name": "text", "tick": "timestamptz"}),
    _by_id("webhooks"),
    MovedTable("webhook_deliveries", {"webhook": "uuid", "number": "bigint"}),
    _by_id("bulk_actions"),
    _by_id("held_jobs"),
    _by_id("flows"),
    MovedTable("checkpoints", {"job": "uuid"}, ("epoch", "number")),
    _by_id("jobs"),
    MovedTable("idempotency", {"key": "text"}),
    MovedTable("unique_jobs", {"digest": "bytea"}),
    MovedTable("job_logs", {"job": "uuid"}, ("epoch", "first_n", "written_at")),
    MovedTable("event_log", {"last_position": "bigint"}, ("written_at",)),
    MovedTable("event_inbox", {"id": "bigint"}),
)
#: What a tenant's own transactions write to, also while it moves: waited for, that might never end.
#: So a part goes along, and whoever has the tenant then brings the others.
OUTBOX = _by_id("outbox")
#: A row or a few: the end of the log, debts of fair share, and the lock of its flows.
WHOLE = ("event_heads", "fair_share", "flow_turns")
