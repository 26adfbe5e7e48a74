"""Which folders and programs the embedded PostgreSQL takes, and which it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fairway.core.errors import Unavailable
from fairway.store.postgres.embedded import EmbeddedPostgres

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as another")


async def test_a_folder_with_other_things_in_it_is_left_alone(room: Path) -> None:
    (room / "thesis.txt").touch()
    before = os.stat(room)
    with pytest.raises(Unavailable, match=r"holds other things \(thesis.txt\)"):
        await EmbeddedPostgres(room).start(print)
    assert os.stat(room)[:6] == before[:6]
