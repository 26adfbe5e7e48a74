"""A wait for jobs in several parts: one of them without an owner hides no news of the others."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from starlette.responses import Response

from fairway.api import waiting_parts
from fairway.core.errors import Unavailable

NEWS = {"jobs": [{"id": "a"}], "missing": []}


async def _tells(after_seconds: float, body: Any) -> Response:
    await asyncio.sleep(after_seconds)
    return Response(msgspec.json.encode(body))


async def _has_no_owner() -> Response:
    raise Unavailable(code="NOT_OWNER")


async def _heard(*parts: Any, is_all: bool = False) -> Any:
    tasks = [asyncio.create_task(one) for one in parts]
    try:
        return msgspec.json.decode((await waiting_parts._first_news(tasks, is_all=is_all)).body)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_the_first_part_with_news_ends_it() -> None:
    assert await _heard(_tells(0, NEWS), _tells(60, NEWS)) == NEWS


async def test_others_are_heard_where_a_part_cannot_be_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await _heard(_has_no_owner(), _tells(0.01, NEWS), _tells(60, NEWS)) == NEWS
    monkeypatch.setattr(waiting_parts, "OTHERS_SECONDS", 0.01)
    with pytest.raises(Unavailable):
        await _heard(_has_no_owner(), _tells(60, NEWS))
    with pytest.raises(Unavailable):
        await _heard(_has_no_owner(), _tells(0, NEWS), is_all=True)
