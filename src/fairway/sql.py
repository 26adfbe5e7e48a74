"""Jobs handed in with a transaction of one's own. See `fairway.sdk.client.sql`."""

from fairway.sdk.client.sql import aenqueue, aenqueue_many, enqueue, enqueue_many

__all__ = ["aenqueue", "aenqueue_many", "enqueue", "enqueue_many"]
