"""S3, GCS or Azure as object storage, by URL: a put is as safe as they promise when it returns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import obstore
from obstore.exceptions import NotSupportedError
from obstore.store import from_url

from fairway.core.object_storage.object_names import Seen

R = TypeVar("R")

CHUNK_BYTES = 5 << 20  # the least that S3 takes as a part
PIECE_BYTES = 256 << 10  # read at a time: everybody who reads holds a few
# TLS is the default everywhere; an endpoint that was written down as http:// is meant so.
CLIENT_OPTIONS: Any = {"timeout": "60s", "connect_timeout": "5s", "allow_http": True}
RETRIES: Any = {"max_retries": 2, "retry_timeout": timedelta(seconds=20)}


class ObjectBucket:
    def __init__(self, url: str) -> None:
        self._store: Any = from_url(url, client_options=CLIENT_OPTIONS, retry_config=RETRIES)

    async def put(self, name: str, body: bytes | AsyncIterator[bytes]) -> None:
        await obstore.put_async(self._store, name, body, chunk_size=CHUNK_BYTES)

    async def copy(self, name: str, to: str) -> None:
        await obstore.copy_async(self._store, name, to)

    async def get(self, name: str) -> bytes:
        """FileNotFoundError when there is none of that name."""
        found = await obstore.get_async(self._store, name)
        return bytes(await found.bytes_async())

    async def seen(self, name: str) -> Seen:
        found = await obstore.head_async(self._store, name)
        marks = [str(mark) for key in ("e_tag", "version") if (mark := found.get(key))]
        return Seen(int(found["size"]), " ".join(marks) or found["last_modified"].isoformat())

    async def stream(self, name: str) -> AsyncGenerator[bytes, None]:
        found = await obstore.get_async(self._store, name)
        async for piece in found.stream(min_chunk_size=PIECE_BYTES):
            yield bytes(piece)

    async def check(self) -> None:
        """A bucket that is not there says of every name that it is not found."""
        try:
            await obstore.list_with_delimiter_async(self._store, "none")
        except FileNotFoundError as error:
            raise OSError(f"The bucket cannot be listed: {error}") from error

    def expect(self, name: str) -> None:
        """A bucket that is not there takes nothing."""

    async def tally(self, prefix: str, tally: Callable[[Iterable[tuple[str, int]]], R]) -> R:
        """What comes of names with their sizes, in no order; all of it in one thread."""
        return await asyncio.to_thread(lambda: tally(self._listed(prefix)))

    def _listed(self, prefix: str) -> Iterator[tuple[str, int]]:
        for part in obstore.list(self._store, prefix):
            yield from ((str(one["path"]), int(one["size"])) for one in part)

    async def folders(self, prefix: str) -> list[str]:
        found = await obstore.list_with_delimiter_async(self._store, prefix)
        return [str(one).rstrip("/").rpartition("/")[2] for one in found["common_prefixes"]]

    async def sign_upload(self, name: str, seconds: int) -> str | None:
        """A URL that takes one PUT of this object; None where storage offers no such thing."""
        try:
            signed = await obstore.sign_async(self._store, "PUT", name, timedelta(seconds=seconds))
        except (NotSupportedError, TypeError, ValueError):
            return None
        return str(signed)

    async def delete(self, names: Sequence[str]) -> None:
        for name in names:
            try:
                await obstore.delete_async(self._store, name)
            except FileNotFoundError:
                continue

    async def drop_empty(self, prefix: str) -> None:
        """A bucket has no folders."""

    async def sweep_parts(self, before_unix: float) -> int:
        """What is left of a broken upload is the bucket's own business."""
        return 0
