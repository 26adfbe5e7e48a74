"""Who may pass through a folder: the account that PostgreSQL runs as, judged step by step."""

from __future__ import annotations

import os
import pwd
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.store.postgres.test_data_folder import as_root

from fairway.core.errors import Unavailable
from fairway.store.postgres import os_user
from fairway.store.postgres.embedded import EmbeddedPostgres
from fairway.store.postgres.os_user import Account, traversable_by


@as_root
async def test_a_closed_parent_is_named_in_the_error(room: Path) -> None:
    (room / "closed").mkdir(mode=0o700)
    with pytest.raises(Unavailable, match=f"may not pass through {room / 'closed'} to reach"):
        await EmbeddedPostgres(room / "closed/deep/data").start(print)
    assert list((room / "closed").iterdir()) == []


def test_the_way_is_judged_by_the_first_closed_folder(room: Path) -> None:
    stranger = Account("stranger", 54321, 54321)
    assert traversable_by(stranger, room / "absent") is None
    (room / "closed/open").mkdir(parents=True)
    (room / "closed").chmod(0o700)
    assert traversable_by(stranger, room / "closed/open/data") == room / "closed"


@as_root
def test_starts_at_one_moment_have_one_account(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each made it anew under another number, and databases of the first one had no owner."""
    name, starts = f"fairway-t{os.getpid()}", 4
    monkeypatch.setattr(os_user, "DEDICATED_NAME", name)
    together = threading.Barrier(starts)

    def start(_: int) -> int:
        together.wait()
        return os_user.account_for(room / "absent").uid

    try:
        with ThreadPoolExecutor(starts) as pool:
            numbers = set(pool.map(start, range(starts)))
        assert numbers == {pwd.getpwnam(name).pw_uid}
    finally:
        subprocess.run(["userdel", name], check=False, capture_output=True)
