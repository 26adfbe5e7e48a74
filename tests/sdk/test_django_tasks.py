"""Django's tasks on Fairway: enqueued by Django's own API, run by ours, looked at by Django's."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

settings.configure(
    USE_TZ=True,
    INSTALLED_APPS=[],
    TASKS={
        "default": {
            "BACKEND": "fairway.sdk.django_tasks.FairwayBackend",
            "QUEUES": [],
            "OPTIONS": {"pools": {"reports": "medium"}, "url": "http://127.0.0.1:1"},
        }
    },
)

import django  # noqa: E402

django.setup()

from django.utils import timezone  # noqa: E402
from tests.sdk import django_shop as shop  # noqa: E402

from fairway import testing  # noqa: E402
from fairway.sdk import django_tasks  # noqa: E402


def test_each_task_is_a_job_type() -> None:
    app = django_tasks.worker_app()
    assert set(app.jobs) == {
        f"tests.sdk.django_shop.{name}" for name in ("total", "report", "ping", "broken")
    }
    assert app.jobs["tests.sdk.django_shop.report"].pool == "medium"
    assert app.jobs["tests.sdk.django_shop.ping"].is_async


def test_a_task_is_enqueued_run_and_looked_at() -> None:
    with testing.manual():
        result = shop.total.enqueue([3, 4], discount=1)
        assert (result.status.value, result.args, result.is_finished) == ("READY", [[3, 4]], False)
        testing.drain()
        result.refresh()
        assert (result.status.value, result.return_value) == ("SUCCESSFUL", 6)
        assert result.attempts == 1
        assert shop.total.get_result(result.id).return_value == 6
        with pytest.raises(Exception, match="Task does not match"):
            shop.ping.get_result(result.id)


async def test_coroutines_and_the_context() -> None:
    with testing.inline():
        assert (await shop.ping.aenqueue("a")).id
        made = await shop.report.aenqueue("sales")
        found = await shop.report.aget_result(made.id)
        assert found.return_value == f"sales 1 {made.id}"


def test_what_fails_tells_why() -> None:
    with testing.inline():
        found = shop.broken.get_result(shop.broken.enqueue().id)
        assert found.status.value == "FAILED"
        [error] = found.errors
        assert error.exception_class is ValueError
        assert "no such order" in error.traceback
        assert found.attempts == 5


def test_priority_pool_and_time_go_with_the_job() -> None:
    later = timezone.now() + timedelta(hours=1)
    with testing.manual():
        shop.report.using(run_after=later).enqueue("sales")
        [job] = testing.all_enqueued()
        assert (job.request.priority, job.request.pool) == (9, "medium")
        assert job.request.execute_at == later


def test_a_result_that_is_not_there() -> None:
    with testing.manual(), pytest.raises(Exception, match="01980a5e") as caught:
        shop.total.get_result("01980a5e-7c1b-7000-8000-04a2b1c3d4e5")
    assert caught.type.__name__ == "TaskResultDoesNotExist"


@given(st.integers(-100, 100))
def test_priorities_keep_their_order(priority: int) -> None:
    here = django_tasks.priority_of(priority)
    assert 0 <= here <= 9
    assert django_tasks.priority_of(0) == 5
    if priority < 100:
        assert here <= django_tasks.priority_of(priority + 1)


def test_what_django_does_not_take_is_not_handed_in() -> None:
    with testing.manual():
        with pytest.raises(TypeError, match="Unsupported type"):
            shop.total.enqueue([object()])
        assert not testing.all_enqueued()


def test_a_time_without_a_zone_is_refused() -> None:
    naive: Any = datetime(2030, 1, 1)  # noqa: DTZ001  (what Django refuses)
    with pytest.raises(Exception, match="run_after must be an aware datetime"):
        shop.total.using(run_after=naive)
