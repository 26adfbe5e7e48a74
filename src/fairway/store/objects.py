"""Object storage: checkpoints, large payloads and large results, by name.

A local folder by default; S3, GCS or Azure by URL, with their usual environment variables for
credentials. Every failure leaves as `Unavailable` with the code STORAGE_UNAVAILABLE, and the last
one is kept so that people can be told why checkpoints do not work. It knows nothing of jobs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import obstore
from obstore.exceptions import BaseError, NotSupportedError
from obstore.store import LocalStore, from_url

from fairway.core.errors import InvalidRequest, Unavailable

CHUNK_BYTES = 5 << 20  # the least that S3 takes as a part
# TLS is the default everywhere; an endpoint that was written down as http:// is meant so.
CLIENT_OPTIONS: Any = {"timeout": "60s", "connect_timeout": "5s", "allow_http": True}
RETRIES: Any = {"max_retries": 2, "retry_timeout": timedelta(seconds=20)}


class Objects:
    def __init__(self, store: Any, address: str) -> None:
        self._store = store
        self.address = address  # for people; never holds credentials
        self.failure: str | None = None  # why the last call failed; None when it did not

    @classmethod
    def open(cls, url: str | None, folder: Path) -> Objects:
        """By URL, or a folder that is made when the first object is written."""
        if url is None or url.startswith("file://"):
            place = folder if url is None else Path(url.removeprefix("file://"))
            return cls(_Folder(place), str(place))
        try:
            store = from_url(url, client_options=CLIENT_OPTIONS, retry_config=RETRIES)
            return cls(store, url.partition("?")[0])
        except (BaseError, ValueError) as error:
            raise InvalidRequest(
                f"FAIRWAY_STORAGE_URL is {url!r}: {_first_line(error)}", code="BAD_SETTING"
            ) from None

    async def put(self, name: str, body: bytes | AsyncIterator[bytes]) -> None:
        """Write a whole object: it is there entirely or not at all. The same name is replaced."""
        with self._noting():
            await obstore.put_async(self._ready(), name, body, chunk_size=CHUNK_BYTES)

    async def get(self, name: str) -> bytes | None:
        """The object, or None when there is none of that name."""
        with self._noting():
            try:
                found = await obstore.get_async(self._ready(), name)
                return bytes(await found.bytes_async())
            except FileNotFoundError:
                return None

    async def size(self, name: str) -> int | None:
        """How many bytes it has, or None when there is none of that name."""
        with self._noting():
            try:
                found = await obstore.head_async(self._ready(), name)
                return int(found["size"])
            except FileNotFoundError:
                return None

    async def stream(self, name: str) -> AsyncIterator[bytes]:
        """The object piece by piece; nothing at all when there is none of that name."""
        with self._noting():
            try:
                found = await obstore.get_async(self._ready(), name)
            except FileNotFoundError:
                return
            async for piece in found.stream(min_chunk_size=1 << 20):
                yield bytes(piece)

    async def copy(self, name: str, to: str) -> None:
        with self._noting():
            await obstore.copy_async(self._ready(), name, to)

    async def delete(self, names: Sequence[str]) -> None:
        """Remove these; one that is gone already is no error."""
        with self._noting():
            for name in names:
                try:
                    await obstore.delete_async(self._ready(), name)
                except FileNotFoundError:
                    continue

    async def names(self, prefix: str) -> list[str]:
        """Every name that begins with these folders, in order."""
        found: list[str] = []
        with self._noting():
            async for part in obstore.list(self._ready(), prefix):
                found += [str(one["path"]) for one in part]
        return sorted(found)

    async def folders(self, prefix: str) -> list[str]:
        """The names of the folders right below this one, in order."""
        with self._noting():
            found = await obstore.list_with_delimiter_async(self._ready(), prefix)
            return sorted(
                str(one).rstrip("/").rpartition("/")[2] for one in found["common_prefixes"]
            )

    async def sign_upload(self, name: str, seconds: int) -> str | None:
        """A URL that takes one PUT of this object; None where storage offers no such thing."""
        with self._noting():
            try:
                signed = await obstore.sign_async(
                    self._ready(), "PUT", name, timedelta(seconds=seconds)
                )
            except (NotSupportedError, TypeError, ValueError):
                return None
            return str(signed)

    def _ready(self) -> Any:
        return self._store.open() if isinstance(self._store, _Folder) else self._store

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            self.failure = f"{self.address}: {_first_line(error)}"
            raise Unavailable(
                f"Object storage does not answer: {self.failure}", code="STORAGE_UNAVAILABLE"
            ) from error
        self.failure = None


class _Folder:
    """A local folder, made on first use: a server that stores nothing leaves no folder behind."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._store: Any = None

    def open(self) -> Any:
        if self._store is None:
            self._path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._store = LocalStore(self._path, automatic_cleanup=True)
        return self._store


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:300] or type(error).__name__
