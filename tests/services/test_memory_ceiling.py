"""The ceiling that is written down is the one that follows from the settings."""

from __future__ import annotations

import re
from pathlib import Path

from fairway.runtime.settings import Settings, replaced
from fairway.services.memory_ceiling import ceiling_bytes, stores

PAGE = Path(__file__).parents[2] / "docs" / "OPERATING.md"
MB = 1 << 20
SMALL = replaced(
    Settings(), connections_max=1000, body_room_bytes_max=128 * MB, checkpoint_bytes_max=16 * MB,
    unread_bytes_max=64 * MB, window_bytes=32 * MB, window_jobs=50_000,
    results_waiting_bytes_max=64 * MB,
)  # fmt: skip


def test_the_page_says_what_the_settings_make() -> None:
    rows = re.findall(r"^\| (.+?) \| .+ \| (\d+) MB \| (\d+) MB \|$", PAGE.read_text(), re.M)
    said = {what: (int(usual), int(small)) for what, usual, small in rows}
    for usual, small in zip(stores(Settings()), stores(SMALL), strict=True):
        assert said.pop(usual.what) == (usual.bytes_max >> 20, small.bytes_max >> 20), usual.what
    assert said == {"**ceiling**": (ceiling_bytes(Settings()) >> 20, ceiling_bytes(SMALL) >> 20)}


def test_every_store_follows_the_settings_it_names() -> None:
    for place, store in enumerate(stores(Settings())):
        for name in store.settings:
            more = replaced(Settings(), **{name: 2 * getattr(Settings(), name)})
            assert stores(more)[place].bytes_max > store.bytes_max, (store.what, name)
