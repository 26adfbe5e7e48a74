"""Every Python block of `docs/LOGS.md` runs as written.

One that needs a package that is not installed is compiled at least.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from fairway import App
from fairway.testing import inline

PAGE = Path(__file__).parents[2] / "docs/LOGS.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
FOREIGN = ("sentry_sdk", "opentelemetry")


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_runs(block: str, tmp_path: Path) -> None:
    compile(block, "LOGS.md", "exec")
    needed = [name for name in FOREIGN if re.search(rf"^(import|from) {name}\b", block, re.M)]
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")
    (tmp_path / "page.py").write_text(block)
    app = App.load(f"{tmp_path / 'page.py'}:app")

    @app.job(name="probe", pool="short")
    async def probe() -> int:
        return 1

    with inline():
        assert probe.enqueue().result() == 1


def test_all_blocks_are_met() -> None:
    assert {name for name in FOREIGN for block in BLOCKS if name in block} == set(FOREIGN)
    assert len(BLOCKS) == 5
