"""docs/CELERY.md as it stands: its project runs on a server with a worker, in fewer lines.

And, on the same one, the block of docs/FLOWS.md that needs a server.
"""

from __future__ import annotations

import ast
import asyncio
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from examples.newsletter import mail
from tests.acceptance.house import House
from tests.acceptance.page_jobs import handed_in_by
from tests.acceptance.processes import until

from fairway import App
from fairway.testing import clock, drain, inline, manual

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/CELERY.md").read_text("utf-8")
(THEIRS,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
(OURS,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
READERS = [f"reader-{n}@example.com" for n in range(50)]


@pytest.fixture
def news(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """A program of the page's own text, with a folder to itself."""
    monkeypatch.setattr(mail, "FOLDER", tmp_path)
    monkeypatch.setenv("NEWSLETTER_FOLDER", str(tmp_path))
    module = ModuleType("celery_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(OURS, "CELERY.md", "exec"), module.__dict__)  # noqa: S102  (our own page)
    yield module
    module.app.close()


def test_the_page_shows_the_file_and_it_is_the_shorter_one() -> None:
    assert (ROOT / "examples/newsletter/jobs.py").read_text("utf-8") == OURS
    lines = [sum(1 for line in text.splitlines() if line.strip()) for text in (OURS, THEIRS)]
    assert lines[0] < lines[1]
    tasks = [
        {one.name for one in ast.parse(text).body if isinstance(one, ast.FunctionDef)}
        for text in (OURS, THEIRS)
    ]
    assert tasks[0] == tasks[1], "they do the same things, by the same names"


def test_mails_are_tried_again_and_the_report_comes_in_the_morning(news: Any) -> None:
    with inline():
        assert news.send.enqueue(6, READERS[0]).status().state == "succeeded"
        (mail.FOLDER / "away").touch()
        assert news.send.enqueue(6, READERS[1]).status().attempts == 5
        assert (mail.FOLDER / "troubles").read_text() == "news.send: the mail server is away\n"
    with manual() as mode:
        news.app.sync_schedules()
        clock.advance("7d")
        drain()
        assert [one.type for one in mode.enqueued] == ["news.report"] * 5


async def test_the_newsletter_comes_out_and_flows_flow(
    house: House, news: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.open(app="tests.acceptance.page_jobs:app")
    monkeypatch.setenv("FAIRWAY_URL", house.urls[0])
    monkeypatch.setenv("FAIRWAY_API_KEY", house.api_key)
    assert await asyncio.to_thread(lambda: news.proof(7, "ed@example.com").result("30s")) == 1
    assert await asyncio.to_thread(lambda: news.prepare(7, READERS).result("30s")) == 51

    later = news.send.options(delay="1h")
    first, again = (
        await later.aenqueue(7, "ed@example.com"),
        await later.aenqueue(7, "ed@example.com"),
    )
    assert first.id == again.id, "one mail to each reader"
    await asyncio.to_thread(news.deliver, 7, [*READERS, "nobody"])
    await until(lambda: has_told() and mail.count("sent") >= 50, 60, "all mails")
    assert (mail.FOLDER / "troubles").read_text() == "news.send: nobody is no address\n"
    await asyncio.to_thread(flow, App("flows", url=house.urls[0], api_key=house.api_key))


def has_told() -> bool:
    return any(one.stat().st_size for one in mail.FOLDER.glob("troubles"))


def flow(app: App) -> None:
    """What docs/FLOWS.md shows, with jobs and data of our own."""
    text = (ROOT / "docs/FLOWS.md").read_text("utf-8")
    _, _, block = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    given: dict[str, Any] = {**handed_in_by(app), "images": ["one", "two"], "album": "summer"}
    given["first"], given["second"] = (given["fetch"].enqueue(at) for at in ("here", "there"))
    exec(compile(block, "FLOWS.md", "exec"), given)  # noqa: S102  (our own page)
    assert given["handle"].result("30s") == "summer"
    app.close()
