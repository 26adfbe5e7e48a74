"""A database written to a file and read back, by PostgreSQL's own `pg_dump` and `pg_restore`.

A dump is one moment of the whole database, taken while others go on. It is read back in one
transaction, into a database without tables, all of it or nothing. Passwords go by the environment,
never by the list of arguments, which everybody on a machine can read.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from fairway.core.errors import Unavailable

#: Compressed while it is written: some times smaller, and a core is busy meanwhile.
COMPRESSION = "gzip:1"
WORDS_MAX = 2000


class PostgresTools(NamedTuple):
    """Where the programs are, and what ties them to this process."""

    folder: Path
    in_child: Callable[[], None] | None = None

    async def dump(self, dsn: str, file: Path) -> None:
        """The whole database as it is at one moment, without owners and grants."""
        format_words = ("--format=custom", f"--compress={COMPRESSION}")
        rights = ("--no-owner", "--no-privileges")
        await self._run("pg_dump", dsn, *format_words, *rights, f"--file={file}")

    async def restore(self, dsn: str, file: Path) -> None:
        """All of it or nothing; what is made belongs to whoever connects."""
        words = ("--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges")
        await self._run("pg_restore", dsn, *words, str(file))

    async def _run(self, program: str, dsn: str, *words: str) -> None:
        address, secrets = without_password(dsn)
        process = await asyncio.create_subprocess_exec(
            str(self.folder / program),
            f"--dbname={address}",
            "--no-password",
            *words,
            env={**os.environ, **secrets},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            preexec_fn=self.in_child,
        )
        try:
            _, said = await process.communicate()
        except BaseException:
            process.send_signal(signal.SIGTERM)
            raise
        if process.returncode:
            words_of_it = said.decode(errors="replace").strip()[-WORDS_MAX:]
            raise Unavailable(f"{program} ended with {process.returncode}: {words_of_it}")


def without_password(dsn: str) -> tuple[str, dict[str, str]]:
    """An address that may be seen, and what belongs into the environment beside it."""
    parts = urlsplit(dsn)
    login, at, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    asked = parse_qsl(parts.query, keep_blank_values=True)
    secret = next((value for name, value in asked if name == "password"), unquote(password))
    query = urlencode([pair for pair in asked if pair[0] != "password"], safe="/,:")
    seen = urlunsplit((parts.scheme, f"{user}{at}{hosts}", parts.path, query, ""))
    if parts.netloc == "" and dsn.startswith("postgresql:///"):  # which is left out when empty
        seen = seen.replace("postgresql:/", "postgresql:///", 1)
    return seen, {"PGPASSWORD": secret} if secret else {}
