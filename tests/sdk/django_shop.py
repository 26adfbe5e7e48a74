"""Tasks as a Django project has them; imported when Django is set up."""

from __future__ import annotations

from typing import Any

try:
    from django.tasks import task
except ImportError:
    from django_tasks import task


@task()  # type: ignore[untyped-decorator]
def total(prices: list[int], discount: int = 0) -> int:
    return sum(prices) - discount


@task(queue_name="reports", priority=100, takes_context=True)  # type: ignore[untyped-decorator]
def report(context: Any, name: str) -> str:
    return f"{name} {context.attempt} {context.task_result.id}"


@task()  # type: ignore[untyped-decorator]
async def ping(name: str) -> str:
    return f"pong {name}"


@task()  # type: ignore[untyped-decorator]
def broken() -> None:
    raise ValueError("no such order")
