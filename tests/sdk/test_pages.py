"""Python blocks of pages that need no server run as they are written, one after the other."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"IDEMPOTENCY": 2, "LIMITS": 3}  # and how many blocks each has


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DOCS / f"{page}.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == PAGES[page]
    module = ModuleType(f"page_{page.lower()}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # annotations are looked up there
    for block in blocks:
        exec(compile(block, f"{page}.md", "exec"), module.__dict__)  # noqa: S102  (our own page)
