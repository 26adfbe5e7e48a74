"""A place of its own for each submission: a folder nobody else may enter, and a user id to run as.

Where the judge is root, every submission has a user id that no other one has at the same time, so
that even a hole in the walls leads to nothing of a neighbour's. Elsewhere all run as the judge's
own account, and the walls alone keep them apart.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from examples.judge.trouble import SandboxUnavailable

PREFIX = "fairway-judge-"
#: Ids that distributions leave unused. The second is for containers that have only 65 536 ids.
RANGES = (range(200_000, 201_000), range(60_514, 60_578))
OLD_SECONDS = 60.0


class Place(NamedTuple):
    folder: Path
    uid: int | None  # None: the judge's own, which is not root


@contextmanager
def opened() -> Iterator[Place]:
    """Gone with everything in it when the block ends."""
    with _account() as uid, tempfile.TemporaryDirectory(prefix=PREFIX) as name, _held(name):
        if uid is not None:
            os.chown(name, uid, uid)
        yield Place(Path(name), uid)


def sweep() -> None:
    """Take away what judges left that were killed. The lock on a folder goes with its judge."""
    for entry in os.scandir(tempfile.gettempdir()):
        if not entry.name.startswith(PREFIX) or not entry.is_dir(follow_symlinks=False):
            continue
        try:
            if time.time() - entry.stat(follow_symlinks=False).st_mtime > OLD_SECONDS:
                with _held(entry.path):
                    shutil.rmtree(entry.path, ignore_errors=True)
        except OSError:
            continue  # somebody works in it, or it is not ours


@contextmanager
def _held(folder: str) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _account() -> Iterator[int | None]:
    """That an id is taken says the name of a socket, which the kernel frees with its owner."""
    if os.geteuid() != 0:
        yield None
        return
    ids = spare_ids()
    first = secrets.randbelow(len(ids))
    for step in range(len(ids)):
        uid = ids[(first + step) % len(ids)]
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mark:
            try:
                mark.bind(f"\0{PREFIX}{uid}")
            except OSError:
                continue
            yield uid
            return
    raise SandboxUnavailable(f"all {len(ids)} user ids for submissions are in use")


def spare_ids() -> range:
    lines = Path("/proc/self/uid_map").read_text().splitlines()
    given = [(int(first), int(count)) for first, _, count in map(str.split, lines)]
    for ids in RANGES:
        if any(first <= ids[0] and ids[-1] < first + count for first, count in given):
            return ids
    raise SandboxUnavailable(
        f"root has no user ids to give away here, {RANGES[1][0]} to {RANGES[1][-1]} at least; "
        "run the judge's workers as an ordinary user"
    )
