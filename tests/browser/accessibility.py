"""axe-core on a page that is open: what it finds to be wrong for people who do not see or point.

It comes from npm with what builds the dashboard (`make web`), and is no part of what is served.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

SCRIPT = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
RUN = "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"


def faults(page: Page) -> list[str]:
    """One line each: which rule, where, and why."""
    if not SCRIPT.exists():
        pytest.skip("axe-core is not installed: run `make web`.")
    page.evaluate(SCRIPT.read_text("utf-8"))  # no policy of the page is in its way
    return [_line(one, node) for one in page.evaluate(RUN) for node in one["nodes"]]


def _line(rule: dict[str, Any], node: dict[str, Any]) -> str:
    return f"{rule['id']}: {node['target']} {node['html'][:160]} {node['failureSummary']}"


def settled(page: Page) -> None:
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)
    expect(page.locator(".problem")).to_have_count(0)
