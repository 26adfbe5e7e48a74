"""The outcome journal: what a worker has still to report, in a small file.

A worker that dies right after a job finished would run it again. So the outcomes of jobs that are
worth it (medium and long pools by default) are appended here before they are reported, and crossed
out when they are on disk at the platform. The next worker that starts in this folder takes over
what dead ones left and reports it: the token of the lease proves its right.

One file a worker's life, locked while it lives, and one for each large result: that is written
beside the loop, and nobody who writes a line waits for it. Writing without fsync is enough: a file
survives the process, and after the loss of a machine the job is run again, as ever.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fairway.runtime.telemetry import logger
from fairway.wire.exchange import Report
from fairway.worker.exchange.large_results import Parts, is_heavy, size_of, text_of

log = logger("journal")

SUFFIX, HEAVY_SUFFIX, NEW = ".journal", ".result", ".new"
LINES_AT_ONCE = 200  # of two parts each; the system takes a thousand
COMPACT_BYTES = 4 << 20  # a file larger than this, and than twice what counts in it, is made anew
FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
_decode_report = msgspec.json.Decoder(Report).decode


class Left(NamedTuple):
    """What a dead worker left. Its files stay until `forget`: until then they are all there is."""

    reports: list[Report]
    file: int  # open, and so locked
    paths: list[Path]

    def forget(self) -> None:
        for path in self.paths:
            path.unlink(missing_ok=True)
        os.close(self.file)


class Journal:
    """The file of this life. Lines: where the outcomes belong, then reports and numbers heard."""

    def __init__(self, folder: Path, life: str, urls: list[str]) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # results are nobody else's business
        self._urls, self._life, self._folder = urls, life, folder
        self._path = folder / f"{life}{SUFFIX}"
        self._file = _locked(self._path)
        self._size_bytes = self._bytes_anew = 0
        self._is_torn = False  # the last line lacks its end
        self._pending: dict[int, Report] = {}
        self._heavy: set[int] = set()
        self._begin()

    def _begin(self) -> None:
        """With nothing to say, the file begins anew."""
        try:
            os.ftruncate(self._file, 0)
            self._size_bytes, self._is_torn = 0, False
        except OSError as error:  # then it grows on; what counts in it can still be told
            log.error("the journal cannot be emptied", error=str(error))
        self._write([self._title()])
        self._bytes_anew = self._size_bytes

    def _title(self) -> Parts:
        return [msgspec.json.encode({"urls": self._urls})]

    def note(self, reports: Iterable[Report]) -> None:
        """These are about to be reported."""
        light = []
        for report in reports:
            if is_heavy(report):
                self._heavy.add(report.n)
                self._write_heavy(report)
            else:
                light.append(report)
        self._pending.update((report.n, report) for report in light)
        self._write([text_of(report) for report in light])

    async def note_beside(self, report: Report) -> None:
        """The same of one large report, while the loop goes on."""
        self._heavy.add(report.n)
        await asyncio.to_thread(self._write_heavy, report)

    def heard(self, numbers: Iterable[int]) -> None:
        """These need not be reported again."""
        known = []
        for number in numbers:
            if self._pending.pop(number, None) is not None:
                known.append(number)
            elif number in self._heavy:
                self._heavy.discard(number)
                _remove(self._heavy_path(number))
        if not known:
            return
        if not self._pending:
            self._begin()
        elif not (self._is_long and self._is_compacted()):
            self._write([[msgspec.json.encode(known)]])

    @property
    def _is_long(self) -> bool:
        return self._size_bytes > max(COMPACT_BYTES, 2 * self._bytes_anew)

    def _is_compacted(self) -> bool:
        """Somebody always has something to say: keep that alone. False: the disk will not."""
        before, path = (self._file, self._size_bytes, self._is_torn), self._path.with_suffix(NEW)
        try:
            self._file = _locked(path)
        except OSError as error:
            log.error("the journal cannot be made anew", error=str(error))
            return False
        self._size_bytes, self._is_torn = 0, False
        lines = [self._title(), *map(text_of, self._pending.values())]
        is_done = self._write(lines) and _is_renamed(path, self._path)
        if is_done:
            os.close(before[0])
        else:  # the old file has all of it
            os.close(self._file)
            _remove(path)
            self._file, self._size_bytes, self._is_torn = before
        self._bytes_anew = self._size_bytes
        return is_done

    def close(self) -> None:
        if not (self._pending or self._heavy):
            _remove(self._path)
        os.close(self._file)

    def inherit(self) -> Iterator[Left]:
        """What workers that are dead left in this folder, for the same platform."""
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            left = self._take_over(path) if path != self._path else None
            if left is not None:
                yield left

    def _take_over(self, path: Path) -> Left | None:
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None  # another worker was quicker
        except OSError as error:
            log.warning("a journal cannot be read", path=str(path), error=str(error))
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            urls, reports = read(path)
            if path.exists() and not set(urls).isdisjoint(self._urls):
                heavy = sorted(self._folder.glob(f"{path.stem}.*{HEAVY_SUFFIX}"))
                return Left(reports + _read_heavy(heavy), file, [*heavy, path])
        except BlockingIOError:
            pass  # its worker lives
        except OSError as error:
            log.warning("a journal cannot be read", path=str(path), error=str(error))
        os.close(file)
        return None

    def _write(self, lines: list[Parts]) -> bool:
        """Whether all of them were."""
        try:
            for start in range(0, len(lines), LINES_AT_ONCE):
                some = lines[start : start + LINES_AT_ONCE]
                parts = [part for line in some for part in (*line, b"\n")]
                if self._is_torn:
                    parts.insert(0, b"\n")  # what is torn never happened; this did
                written = os.writev(self._file, parts)
                self._size_bytes += written
                self._is_torn = written < size_of(parts)
                if self._is_torn:
                    raise OSError(errno.ENOSPC, "the disk took a part only")
        except OSError as error:  # a full disk: jobs go on, and may run twice after a crash
            log.error("outcomes are not in the journal", error=str(error))
            return False
        return True

    def _heavy_path(self, number: int) -> Path:
        return self._folder / f"{self._life}.{number}{HEAVY_SUFFIX}"

    def _write_heavy(self, report: Report) -> None:
        """In any thread."""
        path = self._heavy_path(report.n)
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                for part in text_of(report):
                    _write_whole(file, memoryview(part))
            finally:
                os.close(file)
        except OSError as error:
            log.error("outcomes are not in the journal", error=str(error))
            _remove(path)


def _locked(path: Path) -> int:
    file = os.open(path, FLAGS, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def _write_whole(file: int, part: memoryview) -> None:
    while part:
        part = part[os.write(file, part) :]


def _is_renamed(path: Path, to: Path) -> bool:
    try:
        path.replace(to)
    except OSError as error:
        log.error("the journal cannot be made anew", error=str(error))
        return False
    return True


def _remove(path: Path) -> None:
    with suppress(OSError):  # a disk that is read-only now: what is left is said again, in vain
        path.unlink(missing_ok=True)


def open_journal(folder: Path | None, life: str, urls: list[str]) -> Journal | None:
    """None where there is no folder, or none that can be written to: jobs run all the same."""
    if folder is None:
        return None
    try:
        return Journal(folder, life, urls)
    except OSError as error:
        log.warning("no outcome journal", folder=str(folder), error=str(error))
        return None


def read(path: Path) -> tuple[list[str], list[Report]]:
    """Where the outcomes belong, and those not crossed out; a torn last line never happened."""
    urls: list[str] = []
    reports: dict[int, Report] = {}
    for line in path.read_bytes().splitlines():
        try:
            words: Any = msgspec.json.decode(line)
            if isinstance(words, list):
                for number in words:
                    reports.pop(number, None)
            elif "urls" in words:
                urls = words["urls"]
            else:
                report = _decode_report(line)
                reports[report.n] = report
        except (ValueError, RecursionError):  # no line of ours ends the worker that reads it
            continue
    return urls, list(reports.values())


def _read_heavy(paths: Iterable[Path]) -> list[Report]:
    """A file that was torn by the crash never happened."""
    found = []
    for path in paths:
        with suppress(msgspec.DecodeError, FileNotFoundError):
            found.append(_decode_report(path.read_bytes()))
    return found
