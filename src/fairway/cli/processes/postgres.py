"""`fairway postgres`: the embedded PostgreSQL alone, for a program of your own beside Fairway.

It prints where to connect, one line on stdout, and stops with the command.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from fairway.cli.processes.data_folder import close_to_others, make_data_folder, postgres_folder
from fairway.cli.processes.signals import stop_on_signals
from fairway.runtime.lasting_output import outlive_readers
from fairway.runtime.settings import load
from fairway.store.postgres.embedded import EmbeddedPostgres


def postgres(*, data_dir: Path | None = None) -> None:
    """Start the embedded PostgreSQL alone and print where to connect. Ctrl-C stops it.

    Parameters
    ----------
    data_dir
        Where its data lives (default .fairway); not that of a running `fairway up`.
    """
    outlive_readers()
    settings = load(os.environ, data_dir=data_dir)
    make_data_folder(settings.data_dir)
    close_to_others(settings.data_dir, has_postgres=True)
    folder = postgres_folder(settings.data_dir)
    asyncio.run(_main(EmbeddedPostgres(folder, settings.postgres_bin)))


async def _main(postgres: EmbeddedPostgres) -> None:
    stopping = asyncio.Event()
    stop_on_signals(stopping.set)
    dsn = await postgres.start(_say)
    try:
        sys.stdout.write(f"{dsn}\n")
        sys.stdout.flush()
        ended = asyncio.create_task(postgres.wait())
        asked = asyncio.create_task(stopping.wait())
        await asyncio.wait({ended, asked}, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
    finally:
        await postgres.stop()


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")  # stdout has the address and nothing else
