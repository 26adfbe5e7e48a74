"""The data folder: what we make is for its owner alone, and what others made is theirs."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from fairway.cli.processes.data_folder import (
    MARK,
    MARK_TEXT,
    close_to_others,
    make_data_folder,
    postgres_folder,
)
from fairway.store.postgres.os_user import account_for, traversable_by


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    make_data_folder(tmp_path / "above" / "data")
    assert mode_of(tmp_path / "above" / "data") == 0o700
    assert (tmp_path / "above" / "data" / MARK).read_text() == MARK_TEXT


@pytest.mark.parametrize("mode", [0o755, 0o777, 0o700])
def test_one_that_we_made_is_closed_with_the_next_start(tmp_path: Path, mode: int) -> None:
    make_data_folder(tmp_path / "data")
    (tmp_path / "data").chmod(mode)
    close_to_others(tmp_path / "data", has_postgres=False)
    assert mode_of(tmp_path / "data") == 0o700


@pytest.mark.parametrize("ignored", [None, "", "*.pyc\n", "\udcff"])
def test_one_that_somebody_chose_keeps_its_mode(tmp_path: Path, ignored: str | None) -> None:
    """It may be anything: a home, a folder for everybody."""
    chosen = tmp_path / "chosen"
    chosen.mkdir()
    chosen.chmod(0o755)
    if ignored is not None:
        (chosen / MARK).write_bytes(ignored.encode(errors="surrogateescape"))
    make_data_folder(chosen)
    for has_postgres in (False, True):
        close_to_others(chosen, has_postgres=has_postgres)
        assert mode_of(chosen) == 0o755
    assert (chosen / MARK).exists() == (ignored is not None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has PostgreSQL run as somebody else")
def test_as_root_the_account_of_postgresql_alone_may_pass_through() -> None:
    room = Path("/var/lib/fairway-test-data-folder")  # below folders that everybody may enter
    data = room / "data"
    try:
        make_data_folder(data)
        close_to_others(data, has_postgres=True)
        account = account_for(data / "postgres")
        assert mode_of(data) == 0o710
        assert data.stat().st_gid == account.gid != 0
        assert traversable_by(account, data / "postgres") is None
        assert postgres_folder(data) == data / "postgres"
    finally:
        (data / MARK).unlink(missing_ok=True)
        data.rmdir()
        room.rmdir()
