"""`fairway postgres`: the embedded PostgreSQL alone, for a program of your own beside Fairway.

It prints where to connect, one line on stdout, and stops with the command.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from fairway.cli.processes.data_folder import close_to_others, make_data_folder, postgres_folder
from fairway.cli.processes.process_part import processes_wanted
from fairway.cli.processes.signals import Orders
from fairway.runtime.lasting_output import outlive_readers
from fairway.runtime.parent_death import die_with_parent
from fairway.runtime.settings import Settings, load
from fairway.store.postgres.data_folder import FolderInUse
from fairway.store.postgres.embedded import EmbeddedPostgres


def embedded(settings: Settings) -> EmbeddedPostgres:
    """The PostgreSQL of a data folder; should this process die, it stops by itself, in order."""
    folder = postgres_folder(settings.data_dir)
    tie = partial(die_with_parent, signal.SIGINT)
    count = processes_wanted(settings)
    return EmbeddedPostgres(folder, settings.postgres_bin, in_child=tie, processes=count)


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
    asyncio.run(_main(embedded(settings)))


async def _main(postgres: EmbeddedPostgres) -> None:
    orders = Orders()
    orders.obey_signals()
    dsn = await postgres.start(_say)
    try:
        sys.stdout.write(f"{dsn}\n")
        sys.stdout.flush()
        ended = asyncio.create_task(postgres.wait())
        asked = asyncio.create_task(orders.stopping.wait())
        await asyncio.wait({ended, asked}, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
    finally:
        await postgres.stop(orders.hurried)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")  # stdout has the address and nothing else


@asynccontextmanager
async def owner_address(settings: Settings) -> AsyncIterator[str]:
    """Where the owner of the tables connects: to your PostgreSQL, or to that of a data folder.

    One that runs is used as it is; one that does not is started for as long as this takes.
    """
    if settings.database_url is not None:
        yield settings.owner_database_url or settings.database_url
        return
    postgres = embedded(settings)
    try:
        dsn = await postgres.start(_say)
    except FolderInUse as in_use:
        running = postgres.address_in_use()
        if running is None:
            raise in_use from None
        yield running
        return
    try:
        yield dsn
    finally:
        await postgres.stop()
