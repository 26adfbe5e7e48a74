"""Which PostgreSQL Fairway needs, and the refusal of one that is older. Asks no server itself."""

from __future__ import annotations

from fairway.core.errors import Unavailable

VERSION_MIN = 16


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
