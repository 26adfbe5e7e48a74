"""Job types by name and by number: a dictionary each, and three ways to the store.

The hot path asks the dictionaries only. Names cost nothing to make up, so what is not there yet
must not cost others the connections that they wait for: new names are registered by groups, one
group at a time; a question for a name takes a place of its tenant's; and a name that nobody knows
is not asked for again for a moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from itertools import islice

from fairway.core.errors import InvalidRequest, Unavailable
from fairway.services.again import again
from fairway.services.waiters import Waiters
from fairway.store import tenants as store
from fairway.store.database import DISCONNECTED, Connection, Database

JOB_TYPES_MAX = 10_000
TYPE_CHARACTERS_MAX = 128
NO_TYPE = -1  # no job type has this number
GROUP_MAX = 1000  # names in one statement
ABSENT_SECONDS = 1.0  # so long another server's new name may stay unseen, if it was asked for here
ABSENT_NAMES_REMEMBERED = 5_000


class TypeNames:
    def __init__(self, database: Database) -> None:
        self._database = database
        self.ids: dict[str, int] = {}
        self.names: dict[int, str] = {}
        self._absent: dict[str, float] = {}  # name → until when; the oldest comes first
        self._wanted: dict[str, asyncio.Future[None]] = {}  # to be registered, or just being
        self._waiters = Waiters(database.wait_seconds, Unavailable)
        self._registering: asyncio.Task[None] | None = None
        self._loading: asyncio.Task[None] | None = None

    def _learn(self, types: dict[str, int]) -> None:
        self.ids.update(types)
        self.names.update({number: name for name, number in types.items()})
        for name in types:
            self._absent.pop(name, None)

    # -- all -------------------------------------------------------------------------------------

    async def load(self) -> None:
        async with self._database.people() as connection:
            self._learn(await store.all_job_types(connection))

    async def name_of(self, number: int) -> str:
        for _ in range(2):  # a reading that was under way may have begun before the type was made
            if number not in self.names:
                await self._load_together()
        return self.names.get(number, f"type-{number}")

    async def _load_together(self) -> None:
        """Many may meet the same new type at once: they share one reading."""
        if self._loading is None or self._loading.done():
            self._loading = asyncio.create_task(self.load(), name="load job types")
            self._loading.add_done_callback(_heard)
        await asyncio.shield(self._loading)

    # -- by name ---------------------------------------------------------------------------------

    async def find(self, name: str, asker: int | None = None) -> int | None:
        """A type that any server registered; None when there is none. A tenant asks in its turn."""
        is_name = name.isprintable() and len(name) <= TYPE_CHARACTERS_MAX
        if is_name and not self._is_answered(name):
            try:
                async with self._database.asked(asker) as connection:
                    if not self._is_answered(name):  # meanwhile, to another who asked
                        await self._ask(connection, name)
            except DISCONNECTED as error:
                raise Unavailable() from error
        return self.ids.get(name)

    def _is_answered(self, name: str) -> bool:
        return name in self.ids or self._absent.get(name, 0.0) > _now()

    async def _ask(self, connection: Connection, name: str) -> None:
        asked_at = _now()
        self._learn(await store.read_job_types(connection, [name]))
        if name not in self.ids:
            self._absent.pop(name, None)
            self._absent[name] = asked_at + ABSENT_SECONDS
            if len(self._absent) > ABSENT_NAMES_REMEMBERED:
                del self._absent[next(iter(self._absent))]

    # -- new ones --------------------------------------------------------------------------------

    async def know(self, names: Iterable[str]) -> None:
        """Make sure that every one of these names has its number."""
        missing = {name for name in names if name not in self.ids}
        if not missing:
            return
        self._check_room(missing)
        answers = [self._answer(name) for name in missing]
        if self._registering is None or self._registering.done():
            self._registering = asyncio.create_task(self._register(), name="register job types")
        for answer in answers:
            await asyncio.shield(answer)  # one who leaves takes it from nobody

    def _check_room(self, missing: set[str]) -> None:
        coming = len(self._wanted) + sum(name not in self._wanted for name in missing)
        if len(self.ids) + coming > JOB_TYPES_MAX:
            raise InvalidRequest(
                f"There are {len(self.ids)} job types already; a type is a kind of work, not"
                " a place for data. Put what varies into the payload.",
                code="TOO_MANY_JOB_TYPES",
                field="/type",
            )

    def _answer(self, name: str) -> asyncio.Future[None]:
        answer = self._wanted.get(name)
        if answer is None or answer.done():  # done: its time was over, and it is still to be made
            answer = self._wanted[name] = asyncio.get_running_loop().create_future()
            answer.add_done_callback(_heard)
            self._waiters.add(answer)
        return answer

    async def _register(self) -> None:
        """One group after the other, so that all new names together hold one connection."""
        while self._wanted:
            names = sorted(islice(self._wanted, GROUP_MAX))  # in one order: none waits in a circle
            failure: Exception | None = None
            try:
                await again(partial(self._write, names), self._database.wait_seconds)
            except DISCONNECTED:
                failure = Unavailable()
            except Exception as error:  # told to whoever asked
                failure = error
            for name in names:
                _tell(self._wanted.pop(name), failure)

    async def _write(self, names: list[str], seconds: float) -> None:
        async with self._database.people(seconds) as connection:
            self._learn(await store.register_job_types(connection, names))


def _tell(answer: asyncio.Future[None], failure: Exception | None) -> None:
    if answer.done():
        return  # its time was over
    if failure is None:
        answer.set_result(None)
    else:
        answer.set_exception(failure)


def _heard(answer: asyncio.Future[None]) -> None:
    """Everybody may have left by now; then there is nobody to be warned of an error."""
    if not answer.cancelled():
        answer.exception()


def _now() -> float:
    return asyncio.get_running_loop().time()
