"""The outcome journal: what a worker has still to report, in a small file.

A worker that dies right after a job finished would run it again. So the outcomes of jobs that are
worth it (medium and long pools by default) are appended here before they are reported, and crossed
out when they are on disk at the platform. The next worker that starts in this folder takes over
what dead ones left and reports it: the token of the lease proves its right.

One file a worker's life, locked while it lives. Appending without fsync is enough: the file
survives the process, and after the loss of a machine the job is run again, as ever.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from pathlib import Path
from typing import Any

import msgspec

from fairway.runtime.telemetry import logger
from fairway.wire.exchange import Report
from fairway.worker.heavy import Parts, text_of

log = logger("journal")

SUFFIX = ".journal"
LINES_AT_ONCE = 200  # of five parts at most; the system takes a thousand
_decode_report = msgspec.json.Decoder(Report).decode


class Journal:
    """The file of this life. Lines: where the outcomes belong, then reports and numbers heard."""

    def __init__(self, folder: Path, life: str, urls: list[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._urls = urls
        self._path = folder / f"{life}{SUFFIX}"
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._pending: set[int] = set()
        self._begin()

    def _begin(self) -> None:
        os.ftruncate(self._file, 0)
        self._write([[msgspec.json.encode({"urls": self._urls})]])

    def note(self, reports: list[Report]) -> None:
        """These are about to be reported."""
        self._pending.update(report.n for report in reports)
        self._write([text_of(report) for report in reports])

    async def note_beside(self, report: Report) -> None:
        """The same of one large report, while the loop goes on."""
        self._pending.add(report.n)  # from now on the file does not begin anew
        await asyncio.to_thread(self._write, [text_of(report)])

    def heard(self, numbers: list[int]) -> None:
        """These need not be reported again. With nothing left, the file begins anew."""
        known = self._pending.intersection(numbers)
        if known:
            self._pending -= known
            if self._pending:
                self._write([[msgspec.json.encode(sorted(known))]])
            else:
                self._begin()

    def close(self) -> None:
        if not self._pending:
            self._path.unlink(missing_ok=True)
        os.close(self._file)

    def inherit(self) -> list[Report]:
        """What workers that are dead left in this folder, for the same platform; theirs no more."""
        found: list[Report] = []
        for path in sorted(self._path.parent.glob(f"*{SUFFIX}")):
            if path != self._path:
                found += self._take_over(path)
        return found

    def _take_over(self, path: Path) -> list[Report]:
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return []  # another worker was quicker
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            urls, reports = read(path)
            if path.exists() and not set(urls).isdisjoint(self._urls):
                path.unlink()
                return reports
        except BlockingIOError:
            pass  # its worker lives
        finally:
            os.close(file)
        return []

    def _write(self, lines: list[Parts]) -> None:
        try:
            for start in range(0, len(lines), LINES_AT_ONCE):
                some = lines[start : start + LINES_AT_ONCE]
                os.writev(self._file, [part for line in some for part in (*line, b"\n")])
        except OSError as error:  # a full disk: jobs go on, and may run twice after a crash
            log.error("outcomes are not in the journal", error=str(error))


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
        except msgspec.DecodeError:
            continue
    return urls, list(reports.values())
