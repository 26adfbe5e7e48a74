"""Object storage: checkpoints, large payloads and large results, by name.

A local folder by default; S3, GCS or Azure by URL, with their usual environment variables for
credentials. Every failure leaves as `Unavailable` with the code STORAGE_UNAVAILABLE, which names no
path; its reason is for operators: `failure` keeps the last one, `on_failure` hears of each. Where
they are tied, nothing is read or written before the storage is known to be the right one. It knows
nothing of jobs.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from obstore.exceptions import BaseError

from fairway.core.errors import InvalidRequest, Unavailable
from fairway.core.object_storage.object_names import Seen
from fairway.store.object_storage.bucket import ObjectBucket
from fairway.store.object_storage.local_folder import ObjectFolder

R = TypeVar("R")

MARKER = "cluster"  # the object that says to which database the storage belongs


class Storage:
    """Where objects lie. Knows whose it is said to be; who may use it is the affair of others."""

    def __init__(
        self,
        backend: ObjectFolder | ObjectBucket,
        address: str,
        on_failure: Callable[[str, bool], None],
    ) -> None:
        self.backend = backend
        self.address = address  # for people; never holds credentials
        self.failure: str | None = None  # why the last call failed; None when it did not
        self._on_failure = on_failure  # the reason, and is it news

    @classmethod
    def open(
        cls, url: str | None, folder: Path, on_failure: Callable[[str, bool], None]
    ) -> Storage:
        """By URL, or a folder that is made when the first object is written."""
        if url is None or url.startswith("file://"):
            backend = folder if url is None else Path(url.removeprefix("file://"))
            return cls(ObjectFolder(backend.absolute()), str(backend), on_failure)
        try:
            return cls(ObjectBucket(url), url.partition("?")[0], on_failure)
        except (BaseError, ValueError) as error:
            raise InvalidRequest(
                f"FAIRWAY_STORAGE_URL is {url!r}: {_first_line(error)}", code="BAD_SETTING"
            ) from None

    async def read_marker(self) -> str | None:
        with self.noting():
            try:
                return (await self.backend.get(MARKER)).decode("utf-8", "replace").strip()
            except FileNotFoundError:
                return None

    async def write_marker(self, marker: str) -> None:
        with self.noting():
            await self.backend.put(MARKER, marker.encode())

    def refusal(self, why: str) -> Unavailable:
        """The storage answers, and is not to be used."""
        self._failed(f"{self.address}: {why}")
        return Unavailable(why, code="STORAGE_UNAVAILABLE")

    def _failed(self, failure: str) -> None:
        """An outage fails every call: whoever listens is told whether the reason is a new one."""
        is_news, self.failure = failure != self.failure, failure
        self._on_failure(failure, is_news)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Around a call: its failure in our words, and its reason kept."""
        try:
            yield
        except (BaseError, OSError) as error:
            self._failed(f"{self.address}: {_first_line(error)}")
            raise Unavailable(
                "Object storage does not answer; try again shortly.", code="STORAGE_UNAVAILABLE"
            ) from error
        self.failure = None


class Objects:
    def __init__(self, storage: Storage, tie: Callable[[], Awaitable[str]] | None) -> None:
        self._storage = storage
        self._backend = storage.backend
        self._tie = tie  # the right marker, or Unavailable; None: whatever lies there is right
        self._marker: str | None = None  # once it is known to be here

    @classmethod
    def untied(cls, url: str | None, folder: Path) -> Objects:
        """For whoever asks no database whose they are, and looks at `failure` by itself."""
        return cls(Storage.open(url, folder, _ignore), None)

    @property
    def address(self) -> str:
        return self._storage.address

    @property
    def failure(self) -> str | None:
        """Why the last call failed; None when it did not."""
        return self._storage.failure

    async def put(self, name: str, body: bytes | AsyncIterator[bytes]) -> None:
        """Write a whole object: it is there entirely or not at all. The same name is replaced.

        In a folder it is on disk when this returns; elsewhere it is as safe as they promise.
        """
        async with self._in_use():
            await self._backend.put(name, body)

    async def get(self, name: str) -> bytes | None:
        """The object, or None when there is none of that name."""
        async with self._in_use():
            try:
                return await self._backend.get(name)
            except FileNotFoundError:
                return None

    async def seen(self, name: str) -> Seen | None:
        """Its size and version, or None when there is none of that name."""
        async with self._in_use():
            try:
                return await self._backend.seen(name)
            except FileNotFoundError:
                return None

    async def size(self, name: str) -> int | None:
        """How many bytes it has, or None when there is none of that name."""
        seen = await self.seen(name)
        return None if seen is None else seen.size_bytes

    async def check(self) -> None:
        """Before an object is called gone: Unavailable when none could be found at all.

        A disk that is not mounted, or a bucket of another name, must not end every job.
        """
        async with self._in_use():
            if self._marker is None:
                await self._backend.check()
            elif await self.read_marker() != self._marker:
                raise OSError(f"The object `{MARKER}` is not there: is its disk mounted?")

    async def stream(self, name: str) -> AsyncGenerator[bytes, None]:
        """The object piece by piece; ask for its size first, to know that it is there."""
        async with self._in_use(), aclosing(self._backend.stream(name)) as pieces:
            async for piece in pieces:
                yield piece

    async def copy(self, name: str, to: str) -> None:
        async with self._in_use():
            await self._backend.copy(name, to)

    async def delete(self, names: Sequence[str]) -> None:
        """Remove these; one that is gone already is no error."""
        async with self._in_use():
            await self._backend.delete(names)

    async def names(self, prefix: str) -> list[str]:
        """Every name that begins with these folders, in order."""
        return await self.tally(prefix, lambda found: sorted(name for name, _ in found))

    async def listing(self, prefix: str) -> list[tuple[str, int]]:
        """As `names`, with the size of each in bytes."""
        return await self.tally(prefix, sorted)

    async def tally(self, prefix: str, tally: Callable[[Iterable[tuple[str, int]]], R]) -> R:
        """What comes of every name below these folders and its size, in no order.

        In a thread from the first to the last: there may be hundreds of thousands.
        """
        async with self._in_use():
            return await self._backend.tally(prefix, tally)

    async def folders(self, prefix: str) -> list[str]:
        """The names of the folders right below this one, in order."""
        async with self._in_use():
            return sorted(await self._backend.folders(prefix))

    async def sign_upload(self, name: str, seconds: int) -> str | None:
        """A URL that takes one PUT of this object; None where storage offers no such thing."""
        async with self._in_use():
            return await self._backend.sign_upload(name, seconds)

    async def drop_empty(self, prefix: str) -> None:
        """Forget folders that hold nothing any more, of days that nobody writes to."""
        async with self._in_use():
            await self._backend.drop_empty(prefix)

    async def sweep_parts(self, before: datetime) -> int:
        """Remove what broken writes left behind before a moment; answers how many."""
        async with self._in_use():
            return await self._backend.sweep_parts(before.timestamp())

    async def read_marker(self) -> str | None:
        """Whose it says it is, whether or not these are tied."""
        return await self._storage.read_marker()

    @asynccontextmanager
    async def _in_use(self) -> AsyncIterator[None]:
        if self._marker is None and self._tie is not None:
            self._marker = await self._tie()
            self._backend.expect(MARKER)
        with self._storage.noting():
            yield


def _ignore(reason: str, is_news: bool) -> None:
    return None


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:300] or type(error).__name__
