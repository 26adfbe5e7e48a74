"""What the log says of shards whose term was another's when it was to be renewed.

Another server has taken them; or nobody owns them, as it is with a shard that a tenant is to be
moved to: that is planned, and no warning. It tells, and does nothing else (`ownership.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairway.core.ids import ShardId, Term
from fairway.core.ownership.shard_sight import told
from fairway.runtime.telemetry import logger
from fairway.store.leadership import ShardRow

log = logger("ownership")

LOST, BACK = "shards lost to another owner", "an owner is back, degraded mode is over"
LET_GO = "shards let go of, a tenant is moved to them"


def tell_lost(rows: Iterable[ShardRow], lost: Mapping[ShardId, Term], owns_shards: bool) -> None:
    """Of these, with the terms that they had here."""
    free = {row.shard for row in rows if row.shard in lost and not row.owner}
    if free:
        log.info(LET_GO, **told(free))
    if taken := lost.keys() - free:
        event = LOST if owns_shards else BACK
        log.warning(event, **told(taken), newest_term=max(lost[one] for one in taken))
