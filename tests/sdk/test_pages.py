"""Python blocks of pages that need no server run as they are written, one after the other.

What a page takes for granted, such as jobs and data of the reader's own, its stage has.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import asyncpg
import pytest

from fairway.testing import manual

ROOT = Path(__file__).parents[2]
SHOP = """
from datetime import UTC, datetime, timedelta
from fairway import CTX, App, Ctx
app = App("shop")
"""
ORDERS = """
async def read(file: str) -> list[str]:
    return [file]

@app.job
def check(order: str) -> None: ...

@app.job
def report(file: str) -> None: ...
"""
REMINDERS = """
meeting_begins = datetime.now(UTC) + timedelta(hours=3)

@app.job
def remind(whom: str) -> None: ...

handle = remind.options(delay="1h").enqueue("ada")
"""
MAILS = """
import psycopg

@app.job
def send_mail(to: str) -> None: ...
"""
#: Stage, and how many blocks there are.
PAGES = {
    "README": ("", 2),
    "docs/FLOWS": (SHOP + ORDERS, 2),  # the third needs a server
    "docs/IDEMPOTENCY": ("", 2),
    "docs/LIMITS": ("", 4),
    "docs/POOLS": (SHOP, 2),
    "docs/SCHEDULES": (SHOP + REMINDERS, 3),
    "docs/TESTING": ("", 4),
    "docs/WEBHOOKS": ("", 1),
}
ELSEWHERE = {
    "CELERY": "tests/acceptance/test_newsletter.py",
    "EVENTS": "tests/api/events/test_page.py",
    "FLOWS": "tests/acceptance/test_newsletter.py",
    "FRAMEWORKS": "tests/sdk/test_frameworks_page.py",
    "LOGS": "tests/sdk/test_logs_page.py",
    "TRANSACTIONS": "tests/sdk/test_pages.py",
}


def blocks_of(page: str) -> list[str]:
    text = (ROOT / f"{page}.md").read_text("utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def run(page: str, stage: str, blocks: list[str], **given: Any) -> None:
    module = ModuleType(f"page_of_{Path(page).name.lower()}")
    sys.modules[module.__name__] = module  # annotations are looked up there
    vars(module).update(given)
    try:
        for block in (stage, *blocks):
            exec(compile(block, f"{page}.md", "exec"), vars(module))  # noqa: S102  (our own page)
    finally:
        del sys.modules[module.__name__]


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(page: str) -> None:
    stage, count = PAGES[page]
    with manual():
        run(page, stage, blocks_of(page)[:count])


async def test_a_job_is_handed_in_beside_rows_of_ones_own(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await connection.execute("CREATE TABLE orders (customer text)")
    with manual() as mode:
        run("docs/TRANSACTIONS", SHOP + MAILS, blocks_of("docs/TRANSACTIONS"), dsn=database_url)
        assert [one.args for one in mode.enqueued] == [{"to": "ada"}]
    assert await connection.fetchval("SELECT count(*) FROM orders") == 1
    await connection.execute("DROP TABLE orders")
    await connection.close()


def test_no_block_of_a_page_is_left_out() -> None:
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        page = str(path.relative_to(ROOT).with_suffix(""))
        blocks, here = blocks_of(page), PAGES.get(page, ("", 0))[1]
        if len(blocks) > here:
            assert f"{path.stem}" in (ROOT / ELSEWHERE[path.stem]).read_text("utf-8"), page
