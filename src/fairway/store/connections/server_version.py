"""Which PostgreSQL Fairway needs, and the refusal of one that is older. Asks no server itself."""

from __future__ import annotations

from fairway.core.errors import Unavailable

VERSION_MIN = 16
#: Before it a range over whole keys is read up to the end of its first column: an end of a job then
#: reads past the keys of its shard that come after it (decision 0021).
VERSION_WITH_SHORT_RANGES = 18


def refuse_old_postgres(server_version_num: int) -> None:
    """Before anything is made: it would be found out by a statement that it does not know.

    `server_version_num` is PostgreSQL's own, such as 150008.
    """
    if server_version_num < VERSION_MIN * 10_000:
        raise Unavailable(
            f"This is PostgreSQL {server_version_num // 10_000}; Fairway needs {VERSION_MIN} or"
            " newer. Nothing was changed: upgrade it, or name another in FAIRWAY_DATABASE_URL.",
            code="POSTGRES_TOO_OLD",
        )
