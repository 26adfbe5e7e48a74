"""A real platform, and a real browser that looks at it: Debian's Chromium, by Playwright.

`make browser` runs these. They need the dashboard to be built (`make web`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.api.house import House, own_house
from tests.browser.aside import Aside, Caller, Hand, caller_of, hand_worker
from tests.postgres import Server

from fairway.api.dashboard.static_files import is_built

PATIENCE_MS = 30_000


@pytest.fixture(scope="session")
def house(postgres_server: Server) -> Iterator[House]:
    with own_house(postgres_server, "browser_tests") as house:
        yield house


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**chromium())
        yield browser
        browser.close()


def chromium() -> dict[str, Any]:
    """How Debian's is started."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("There is no chromium: `make browser` installs it.")
    if not is_built():
        pytest.skip("The dashboard is not built: run `make web`.")
    words = ["--no-sandbox"] if os.geteuid() == 0 else []
    return {"executable_path": program, "args": words}


@pytest.fixture
def page(browser: Browser, house: House) -> Iterator[Page]:
    """A browser's window of its own; what the page's policy forbids, or breaks it, fails."""
    with browser.new_context(base_url=house.url) as context:
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda line: wrong.append(line.text) if _is_refusal(line.text) else None)
        yield page
        assert wrong == []


@pytest.fixture
def aside() -> Iterator[Aside]:
    aside = Aside()
    yield aside
    aside.close()


@pytest.fixture
def tenant(house: House, aside: Aside) -> Iterator[Caller]:
    _, key = house.new_tenant()
    with caller_of(house, aside, key) as caller:
        yield caller


@pytest.fixture
def worker(house: House, aside: Aside) -> Iterator[Hand]:
    with hand_worker(house, aside) as worker:
        yield worker


def _is_refusal(text: str) -> bool:
    return "Content Security Policy" in text
