"""Django's tasks on Fairway: a backend for `TASKS`, and the app that a worker runs them with.

    TASKS = {"default": {"BACKEND": "fairway.sdk.django_tasks.FairwayBackend",
                         "OPTIONS": {"pools": {"reports": "medium"}}, "QUEUES": []}}

Each task is a job type of its own, by its path, so that circuits, quarantine and dead letters tell
them apart. A queue is a pool: `short`, unless OPTIONS name another. Needs Django 6, or Django 5.2
with django-tasks; nothing else of the SDK imports it.
"""

from __future__ import annotations

import builtins
from dataclasses import replace
from inspect import iscoroutinefunction
from typing import Any

from django.db import close_old_connections
from django.utils import timezone
from django.utils.module_loading import autodiscover_modules, import_string

try:
    from django.tasks import task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django.tasks.exceptions import TaskResultDoesNotExist
    from django.tasks.signals import task_enqueued
except ImportError:  # before Django 6
    from django_tasks import task_backends
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django_tasks.exceptions import TaskResultDoesNotExist
    from django_tasks.signals import task_enqueued

from fairway.core.errors import NotFound
from fairway.sdk.app import App
from fairway.sdk.client.enqueue import EnqueueOptions, Enqueuer
from fairway.sdk.client.handle import Handle
from fairway.sdk.client.status import JobStatus
from fairway.sdk.handler.context import Ctx

_STATUS = {"running": "RUNNING", "succeeded": "SUCCESSFUL"} | dict.fromkeys(
    ("dead", "cancelled", "expired"), "FAILED"
)


def worker_app(alias: str = "default") -> App:
    """For `fairway worker`, after `django.setup()`: what the apps' modules `tasks` declare."""
    autodiscover_modules("tasks")
    app: App = task_backends[alias].app
    return app


class FairwayBackend(BaseTaskBackend):  # type: ignore[misc]  # Django says no types
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        options = dict(self.options)
        self._pools: dict[str, str] = options.pop("pools", {})
        self.app = App(options.pop("app", "django"), **options)

    def validate_task(self, task: Task) -> None:
        """Every task comes by here when it is declared, and becomes a job type."""
        super().validate_task(task)
        if task.module_path not in self.app.jobs:
            self.app.job(name=task.module_path, pool=self._pool(task))(_handler_of(task))

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        made = self._checked(task, args, kwargs)
        return self._accepted(made, self._enqueuer(task).enqueue(made.args, made.kwargs))

    async def aenqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        made = self._checked(task, args, kwargs)
        return self._accepted(made, await self._enqueuer(task).aenqueue(made.args, made.kwargs))

    def get_result(self, result_id: str) -> TaskResult:
        try:
            return self._result(Handle.from_id(self.app, result_id).status())
        except NotFound as error:
            raise TaskResultDoesNotExist(result_id) from error

    async def aget_result(self, result_id: str) -> TaskResult:
        try:
            return self._result(await Handle.from_id(self.app, result_id).astatus())
        except NotFound as error:
            raise TaskResultDoesNotExist(result_id) from error

    def _pool(self, task: Task) -> str:
        return self._pools.get(task.queue_name, "short")

    def _enqueuer(self, task: Task) -> Enqueuer[..., Any]:
        self.validate_task(task)
        wanted: EnqueueOptions = {
            "priority": priority_of(task.priority),
            "pool": self._pool(task),
        }
        if (due := task.run_after) is not None:
            wanted["at"] = due if timezone.is_aware(due) else timezone.make_aware(due)
        return self.app.jobs[task.module_path].options(**wanted)

    def _checked(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """TypeError for arguments that Django does not take, before anything is handed in."""
        return _task_result(task, "", self.alias, args=args, kwargs=kwargs)

    def _accepted(self, checked: TaskResult, handle: Handle[Any]) -> TaskResult:
        made = replace(checked, id=handle.id, enqueued_at=timezone.now())
        task_enqueued.send(type(self), task_result=made)
        return made

    def _result(self, seen: JobStatus) -> TaskResult:
        given = seen.payload if isinstance(seen.payload, dict) else {}
        workers = [str(note.get("worker", "")) for note in seen.history][: seen.attempts]
        found = _task_result(
            _task_at(seen.type),
            seen.id,
            self.alias,
            args=given.get("args", []),
            kwargs=given.get("kwargs", {}),
            status=TaskResultStatus[_STATUS.get(seen.state, "READY")],
            enqueued_at=seen.created_at,
            started_at=seen.started_at,
            last_attempted_at=seen.started_at,
            finished_at=seen.finished_at,
            errors=[] if seen.state == "succeeded" else _errors(seen.error),
            worker_ids=workers + [""] * (seen.attempts - len(workers)),
        )
        object.__setattr__(found, "_return_value", seen.result)  # as its own backends do
        return found


def priority_of(priority: int) -> int:
    """Django's -100 to 100 as 0 to 9; what says nothing is in the middle of both."""
    return 5 + round(priority * (4 if priority > 0 else 5) / 100)


def _handler_of(task: Task) -> Any:
    path = task.module_path

    async def work(args: list[Any], kwargs: dict[str, Any]) -> Any:
        return await _run_async(path, args, kwargs)

    def work_in_thread(args: list[Any], kwargs: dict[str, Any]) -> Any:
        return _run(path, args, kwargs)

    return work if iscoroutinefunction(task.func) else work_in_thread


def _run(path: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    close_old_connections()  # as around a request: one that the database closed is no use
    try:
        task = _task_at(path)
        return task.func(*_context(task, args, kwargs), *args, **kwargs)
    finally:
        close_old_connections()


async def _run_async(path: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    task = _task_at(path)
    return await task.func(*_context(task, args, kwargs), *args, **kwargs)


def _context(task: Task, args: list[Any], kwargs: dict[str, Any]) -> list[TaskContext]:
    if not task.takes_context:
        return []
    ctx = Ctx.current()
    running = _task_result(
        task,
        ctx.job_id,
        task.backend,
        args=args,
        kwargs=kwargs,
        status=TaskResultStatus.RUNNING,
        started_at=timezone.now(),
        last_attempted_at=timezone.now(),
        worker_ids=[""] * ctx.attempt,
    )
    return [TaskContext(task_result=running)]


def _task_at(path: str) -> Task:
    found = import_string(path)
    if not isinstance(found, Task):
        raise TaskResultDoesNotExist(f"{path} is no task")
    return found


def _task_result(task: Task, job_id: str, alias: str, **more: Any) -> TaskResult:
    nothing: dict[str, Any] = dict.fromkeys(
        ("enqueued_at", "started_at", "last_attempted_at", "finished_at")
    )
    lists: dict[str, Any] = {"errors": [], "worker_ids": []}
    said = {"status": TaskResultStatus.READY, **nothing, **lists, **more}
    return TaskResult(task=task, id=job_id, backend=alias, **said)


def _errors(error: Any) -> list[TaskError]:
    if not isinstance(error, dict):
        return []
    kind = str(error.get("type", "Exception"))
    path = f"builtins.{kind}" if hasattr(builtins, kind) else kind
    return [TaskError(exception_class_path=path, traceback=str(error.get("stack", "")))]
