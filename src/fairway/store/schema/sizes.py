"""How large a table is; on a distributed store that of its parts: the coordinator has none.

Whoever walks over the pages of a table walks over those of all its parts at once, so what counts as
its length is that of the longest.
"""

from __future__ import annotations

from typing import Any

_OF_PARTS = """
SELECT coalesce(max(result::bigint), 0)
FROM run_command_on_shards($1::text::regclass, 'SELECT pg_relation_size(''%s'')') WHERE success
"""


async def relation_bytes(connection: Any, table: str) -> int:
    """Of a plain table or of one partition; distributed, of its largest part."""
    if getattr(connection, "placement", None) is not None:
        found: int = await connection.fetchval(_OF_PARTS, table)
        return found
    size: int = await connection.fetchval("SELECT pg_relation_size($1::text::regclass)", table)
    return size
