"""Server processes behind one address: how many, what each has of the store, which one this is.

Pure: counts and words in, counts and words out. Their parent is `cli/processes/server_group.py`: it
says to each who it is, in one variable, and holds every address, so that all of it stays the same
over the lives of a process. A server that runs alone is in no group.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

FEW_CORES = 2  # PostgreSQL and workers need one as well
DEFAULT_MAX = 8  # as many as the 100 connections of a usual PostgreSQL have room for
PROCESSES_MAX = 64
DEDICATED_CONNECTIONS = 2  # of a process: for leadership, and to see whether the store is there
GROUP_VARIABLE = "FAIRWAY_PROCESS_GROUP"
SAYING_BYTES = 16  # of each process, in the file that says who takes connections, and how many
SPARE_CONNECTIONS = 5  # beside servers: a migration, a backup, an operator


class PoolSizes(NamedTuple):
    """Connections to the store that one process opens at most, by kind of work."""

    hot: int
    people: int
    background: int
    upkeep: int


WHOLE = PoolSizes(hot=6, people=4, background=2, upkeep=1)
#: With less, one slow question or one long write would hold up all others of its process.
LEAST = PoolSizes(hot=3, people=3, background=2, upkeep=1)


def processes_by_cores(cores: int) -> int:
    """One on a small machine; then half of the cores: the rest is for PostgreSQL and workers."""
    return 1 if cores <= FEW_CORES else min(cores // 2, DEFAULT_MAX)


def pool_sizes(processes: int) -> PoolSizes:
    """The part of each of so many processes in the connections of one server, or the least."""
    shares = (-(-whole // processes) for whole in WHOLE)
    return PoolSizes(*(max(share, least) for share, least in zip(shares, LEAST, strict=True)))


def part_of(whole: int, processes: int, least: int) -> int:
    """Of a bound on memory: one process's part, or what it needs to work, but never over all."""
    return min(whole, max(-(-whole // processes), least))


def connections_of(processes: int) -> int:
    """All that so many processes open, together."""
    return processes * (sum(pool_sizes(processes)) + DEDICATED_CONNECTIONS)


def connections_needed(processes: int) -> int:
    """What PostgreSQL must have room for, so that somebody can still look after it."""
    return connections_of(processes) + SPARE_CONNECTIONS


class SiblingFiles(NamedTuple):
    """Descriptors by which processes hand connections to each other."""

    pids_fd: int  # the processes that take connections, and how much they have, by number
    taken_fd: int  # where this one takes them
    handed_fds: tuple[int, ...]  # where each is handed them, by number


class ProcessGroup(NamedTuple):
    """All processes of one server, and this one among them."""

    name: str  # of the whole, while the parent lives
    number: int  # of this one, from 1
    listen_fd: int  # its own address, which no other listens at
    urls: tuple[str, ...]  # where each is reached, by number
    counts_fds: tuple[int, ...]  # where each keeps what it has counted, by number
    files: SiblingFiles

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> ProcessGroup | None:
        said = environment.get(GROUP_VARIABLE, "").split()
        if not said:
            return None
        name, number, listen_fd, urls, counts_fds, pids_fd, taken_fd, handed_fds = said
        files = SiblingFiles(int(pids_fd), int(taken_fd), _numbers(handed_fds))
        where = tuple(urls.split(","))
        return cls(name, int(number), int(listen_fd), where, _numbers(counts_fds), files)

    def said(self) -> str:
        """The words for the variable."""
        urls, files = ",".join(self.urls), self.files
        counts_fds, handed_fds = _words(self.counts_fds), _words(files.handed_fds)
        own = f"{self.name} {self.number} {self.listen_fd} {urls} {counts_fds}"
        return f"{own} {files.pids_fd} {files.taken_fd} {handed_fds}"

    @property
    def url(self) -> str:
        return self.urls[self.number - 1]

    @property
    def numbers(self) -> dict[str, int]:
        """By address."""
        return {url: number for number, url in enumerate(self.urls, 1)}

    @property
    def siblings(self) -> list[int]:
        """The numbers of the others."""
        return [number for number in range(1, len(self.urls) + 1) if number != self.number]

    def server_name(self, pid: int) -> str:
        """Another in every life: what the last one owned is not owned by this one."""
        return f"{self.name}-{self.number}.{pid}"

    def pid_of(self, server_name: str) -> int | None:
        """The process that has or had this name, if it was one of these."""
        group, _, life = server_name.rpartition("-")
        number, _, pid = life.partition(".")
        is_ours = group == self.name and number.isdecimal() and pid.isdecimal()
        return int(pid) if is_ours else None


class ServerIdentity(NamedTuple):
    """Who a server is, in one life of it."""

    name: str
    group: ProcessGroup | None  # of the processes that it is one of


def _words(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


def _numbers(words: str) -> tuple[int, ...]:
    return tuple(map(int, words.split(",")))
