"""`fairway backup` under load, then `restore` elsewhere: every acknowledged job is there."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from tests.acceptance.processes import ROOT
from tests.acceptance.test_one_machine import Machine


async def fairway(*words: str) -> None:
    ended = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-m", "fairway", *words], cwd=ROOT,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr


@pytest.mark.slow
async def test_a_backup_under_load_brings_every_acknowledged_job_back(room: Path) -> None:
    original, copy = Machine(room), Machine(room)
    copy.data, copy.log = room / "copy", room / "copy.log"
    try:
        up = await original.start()
        async with original.load() as load:
            await load.has_accepted(100, within_seconds=60)
            acknowledged = set(load.accepted)
            await fairway("backup", str(room / "nightly"), "--data-dir", str(original.data))
            await load.has_accepted(30, within_seconds=60)
        await up.kill()
        await fairway("restore", str(room / "nightly"), "--data-dir", str(copy.data))
        await copy.start()
        await copy.book.drained(120)
        assert len(acknowledged) >= 100
        assert acknowledged <= set(await copy.book.rows())
    finally:
        original.close()
        copy.close()
