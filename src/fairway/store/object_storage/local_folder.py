"""A local folder as object storage: what was put is on disk when `put` returns, power cut or not.

An object is written to a part, synced, renamed to its place, and then the folders that lead to it
are synced. All of it happens in a few threads of its own, so a slow disk holds up nobody else;
what is read of uploads, and counted of them, in others than what jobs need.
Parts that a crash left behind are swept. A folder without its place for parts (a disk that is not
mounted) does not pass the check: an object is gone only from where objects can be.
"""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import shutil
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

from fairway.core.object_storage.object_names import Seen

P = ParamSpec("P")
R = TypeVar("R")

PARTS = ".parts"  # below the root: on the same file system, and swept by one look
UPLOADS = "uploads/"
THREADS = 8
PIECE_BYTES = 256 << 10  # read at a time: everybody who reads holds a few
SYNC_BYTES = 16 << 20
PLACE_TRIES = 20  # a folder may be removed, empty, between making it and using it
SYNCED_MAX = 10_000
SHARED_DEPTH = 3  # kind, day and tenant: folders that many objects have in common
NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV}


class ObjectFolder:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._expected: Path | None = None
        self._synced: set[Path] = set()  # folders whose own name is on disk
        self._threads = ThreadPoolExecutor(THREADS, "objects")
        self._upload_threads = ThreadPoolExecutor(THREADS, "uploads")  # others need not wait
        self._look_threads = ThreadPoolExecutor(THREADS, "looks")  # at uploads

    # -- write -------------------------------------------------------------------------------

    async def put(self, name: str, body: bytes | AsyncIterator[bytes]) -> None:
        if isinstance(body, bytes):
            await self._run(self._put_whole, name, body)
            return
        part = await self._run(self._new_part)
        try:
            async for piece in body:
                await _in(self._upload_threads, part.write, piece)
            await _in(self._upload_threads, self._finish, part, name)
        finally:
            self._threads.submit(part.abandon)  # not awaited: we may be on the way out

    async def copy(self, name: str, to: str) -> None:
        await self._run(self._copy, name, to)

    def _put_whole(self, name: str, body: bytes) -> None:
        part = self._new_part()
        try:
            part.write(body)
            self._finish(part, name)
        finally:
            part.abandon()

    def _new_part(self) -> _Part:
        path = self._root / PARTS / secrets.token_hex(16)
        if not path.parent.exists():
            self._check_expected()
            self._synced.clear()  # it is new, or was removed under us
        self._make(path.parent)
        return _Part(path)

    def expect(self, name: str) -> None:
        """From now on nothing is written into a folder that has lost this object."""
        self._expected = self._root / name

    def _check_expected(self) -> None:
        if self._expected is not None and not self._expected.exists():
            raise OSError(errno.ENXIO, f"{self._expected} is gone: is its disk mounted?")

    def _finish(self, part: _Part, name: str) -> None:
        part.sync()
        self._place(part.path, name)

    def _place(self, part: Path, name: str) -> None:
        target = self._root / name
        for tries_left in reversed(range(PLACE_TRIES)):
            try:
                self._make(target.parent)
                os.rename(part, target)
                break
            except (FileNotFoundError, FileExistsError):  # it went as we looked at it
                self._synced.clear()
                if not tries_left:
                    raise
        _sync_folder(target.parent)

    def _make(self, folder: Path) -> None:
        """The folder is there, and so will it be after a power cut, whoever made it."""
        if folder in self._synced:
            return
        if folder == self._root:
            for above in reversed([one for one in folder.parents if not one.exists()]):
                above.mkdir(mode=0o700, exist_ok=True)
                _sync_folder(above.parent)
        else:
            self._make(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        _sync_folder(folder.parent)
        if len(folder.relative_to(self._root).parts) <= SHARED_DEPTH:
            if len(self._synced) >= SYNCED_MAX:
                self._synced.clear()
            self._synced.add(folder)

    def _copy(self, name: str, to: str) -> None:
        """By a link where there are links: objects are replaced, never written into."""
        part = self._new_part()
        try:
            part.become(self._root / name)
            self._place(part.path, to)
        finally:
            part.abandon()

    # -- read --------------------------------------------------------------------------------

    async def get(self, name: str) -> bytes:
        """FileNotFoundError when there is none of that name."""
        return await _in(self._readers(name), (self._root / name).read_bytes)

    async def seen(self, name: str) -> Seen:
        found = await _in(self._readers(name), (self._root / name).stat)
        return Seen(found.st_size, f"{found.st_ino:x}-{found.st_mtime_ns:x}")

    async def stream(self, name: str) -> AsyncGenerator[bytes, None]:
        threads = self._readers(name)
        file = await _in(threads, lambda: open(self._root / name, "rb"))  # noqa: SIM115  # closed by whoever reads last
        try:
            while piece := await _in(threads, file.read, PIECE_BYTES):
                yield piece
        finally:
            threads.submit(file.close)

    async def tally(self, prefix: str, tally: Callable[[Iterable[tuple[str, int]]], R]) -> R:
        """What comes of names with their sizes, in no order; all of it in one thread."""
        return await _in(self._readers(prefix), lambda: tally(self._walk(self._root / prefix)))

    async def folders(self, prefix: str) -> list[str]:
        return await self._run(self._folders, self._root / prefix)

    async def sign_upload(self, name: str, seconds: int) -> str | None:
        return None  # the server takes uploads for a folder

    async def check(self) -> None:
        if not await self._run((self._root / PARTS).is_dir):
            raise OSError(errno.ENXIO, f"{self._root} holds no objects: is its disk mounted?")

    def _readers(self, name: str) -> ThreadPoolExecutor:
        return self._look_threads if name.startswith(UPLOADS) else self._threads

    def _walk(self, folder: Path) -> Iterator[tuple[str, int]]:
        for above, folders, files in os.walk(folder):
            folders[:] = [one for one in folders if not one.startswith(".")]
            for file in files:
                path = Path(above, file)
                if not file.startswith(".") and (found := _size(path)) is not None:
                    yield path.relative_to(self._root).as_posix(), found

    def _folders(self, folder: Path) -> list[str]:
        try:
            with os.scandir(folder) as found:
                return [one.name for one in found if one.is_dir() and one.name[0] != "."]
        except FileNotFoundError:
            return []

    # -- remove ------------------------------------------------------------------------------

    async def delete(self, names: Sequence[str]) -> None:
        await self._run(self._delete, names)

    async def drop_empty(self, prefix: str) -> None:
        """Folders below this one that hold nothing; only for days that nobody writes to."""
        await self._run(self._drop_empty, self._root / prefix)

    async def sweep_parts(self, before_unix: float) -> int:
        """Parts that nobody has written to since: what crashes left behind. Answers how many."""
        return await self._run(self._sweep_parts, before_unix)

    def _delete(self, names: Sequence[str]) -> None:
        for name in names:
            path = self._root / name
            path.unlink(missing_ok=True)
            _remove_if_empty(path.parent)

    def _drop_empty(self, folder: Path) -> None:
        for above, _, _ in os.walk(folder, topdown=False):
            _remove_if_empty(Path(above))
        self._synced.clear()

    def _sweep_parts(self, before_unix: float) -> int:
        swept = 0
        if (self._root / PARTS).is_dir():
            for path in (self._root / PARTS).iterdir():
                if path.stat().st_mtime < before_unix:
                    path.unlink(missing_ok=True)
                    swept += 1
        return swept

    async def _run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await _in(self._threads, work, *args, **kwargs)


async def _in(
    threads: ThreadPoolExecutor, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs
) -> R:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(threads, lambda: work(*args, **kwargs))


class _Part:
    """A file on its way to becoming an object. It may be abandoned while it is written to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._is_open = True
        self._unsynced_bytes = 0

    def write(self, piece: bytes) -> None:
        with self._lock:
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(self._ready(), rest) :]
            self._unsynced_bytes += len(piece)
            if self._unsynced_bytes >= SYNC_BYTES:  # so that no one sync takes long
                os.fdatasync(self._ready())
                self._unsynced_bytes = 0

    def sync(self) -> None:
        with self._lock:
            os.fsync(self._ready())

    def become(self, other: Path) -> None:
        """The same bytes as an object that is on disk already."""
        with self._lock:
            self.path.unlink()
            try:
                os.link(other, self.path)
            except OSError as error:
                if error.errno not in NO_LINKS:
                    raise
                shutil.copyfile(other, self.path)
                with open(self.path, "rb+") as copied:
                    os.fsync(copied.fileno())

    def abandon(self) -> None:
        """Close it; a part that did not become an object is removed."""
        with self._lock:
            if self._is_open:
                self._is_open = False
                os.close(self._file)
                self.path.unlink(missing_ok=True)

    def _ready(self) -> int:
        if not self._is_open:
            raise OSError(errno.EBADF, "The part was abandoned.")
        return self._file


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system whose folders need no sync
            raise
    finally:
        os.close(opened)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None  # removed while we looked


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.ENOENT, errno.EEXIST):
            raise
