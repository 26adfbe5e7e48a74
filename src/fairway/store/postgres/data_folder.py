"""The data folder of the embedded PostgreSQL: what lies in it, who owns it, who may use it now.

    data_dir/            0700, owned by the account of PostgreSQL, for PostgreSQL alone
      pgdata/            the database cluster
      socket/            where it listens
      postgres.log       what it says
      fairway.lock       held by the one Fairway that uses the folder
      VERSION            PostgreSQL's major version and the number of this layout

It never takes over a folder with anything else in it. Files are put in place without following
links: we may be root, the account that owns the folder is not.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fairway.core.errors import Unavailable
from fairway.store.postgres.os_user import Account, traversable_by

LAYOUT = 1
PORT = 5432  # names the socket's file; nothing listens on a network
OUR_NAMES = {"pgdata", "socket", "postgres.log", "postgres.log.1", "fairway.lock", "VERSION"}
SOCKET_PATH_BYTES_MAX = 107
LOG_KEPT_BYTES_MAX = 64 * 1024 * 1024


class FolderInUse(Unavailable):
    """Another Fairway is using this data folder."""


@dataclass(frozen=True, slots=True)
class DataFolder:
    root: Path
    account: Account

    @property
    def cluster(self) -> Path:
        return self.root / "pgdata"

    @property
    def log(self) -> Path:
        return self.root / "postgres.log"


def claim(root: Path, account: Account) -> DataFolder:
    """Make or take the folder, private to the account."""
    _require_way(root, account)
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    _require_way(root, account)  # again: a strict umask closes the parents that we just made
    _require_ours(root, account)
    give(root, account)
    root.chmod(0o700)
    return DataFolder(root, account)


def take_lock(folder: DataFolder) -> int:
    """Hold the folder for this process; the system lets go of it however the process ends."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(folder.root / "fairway.lock", flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        give(descriptor, folder.account)
    except BlockingIOError:
        os.close(descriptor)
        raise FolderInUse(
            f"Another Fairway is using this data folder: {folder.root}. "
            "Stop it, or choose another FAIRWAY_DATA_DIR."
        ) from None
    return descriptor


def check_version(folder: DataFolder, major: int) -> None:
    """Refuse a folder of another major PostgreSQL or of a later layout; then note ours."""
    note = folder.root / "VERSION"
    mark = folder.cluster / "PG_VERSION"
    found = mark.read_text().strip() if mark.exists() else "(unknown)"
    if found != str(major):
        raise Unavailable(
            f"{folder.root} was made by PostgreSQL {found}, this Fairway brings {major}. Move the "
            "data with pg_upgrade or dump and restore, or choose another FAIRWAY_DATA_DIR."
        )
    layout = re.search(r"^layout (\d+)$", note.read_text() if note.exists() else "", re.MULTILINE)
    if layout and int(layout[1]) > LAYOUT:
        raise Unavailable(f"{folder.root} was made by a newer Fairway: use that one to open it.")
    replace_text(note, f"postgresql {major}\nlayout {LAYOUT}\n", folder.account)


def socket_dir(folder: DataFolder) -> Path:
    """A private folder for the socket: in the data folder, or elsewhere if its path is too long."""
    chosen = folder.root / "socket"
    if not _holds_socket(chosen):
        digest = hashlib.sha256(os.fsencode(folder.root)).hexdigest()[:16]
        chosen = _scratch(folder.account) / f"fairway-{digest}"
    if not os.path.lexists(chosen):
        chosen.mkdir(mode=0o700)
        give(chosen, folder.account)
    facts = chosen.lstat()  # in a shared folder somebody else may have made it first
    if (facts.st_mode, facts.st_uid) != (0o040700, folder.account.uid):
        raise Unavailable(
            f"{chosen} must be a folder of mode 0700 owned by {folder.account.name}; remove it."
        )
    return chosen


def open_log(folder: DataFolder) -> int:
    """The log, for appending. A very large one is set aside first."""
    if folder.log.exists() and folder.log.lstat().st_size > LOG_KEPT_BYTES_MAX:
        folder.log.replace(folder.root / "postgres.log.1")
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(folder.log, flags, 0o600)
    give(descriptor, folder.account)
    return descriptor


def replace_text(path: Path, text: str, account: Account) -> None:
    """Put a file in place whole, on disk, or not at all."""
    descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.new-", dir=path.parent)
    with os.fdopen(descriptor, "w") as fresh:
        fresh.write(text)
        fresh.flush()
        give(descriptor, account)
        os.fsync(descriptor)
    os.replace(name, path)


def give(path: Path | int, account: Account) -> None:
    """Make the account the owner, where we are not the account ourselves."""
    if account.is_ours:
        return
    if isinstance(path, int):
        os.fchown(path, account.uid, account.gid)
    else:
        os.lchown(path, account.uid, account.gid)


def _require_way(root: Path, account: Account) -> None:
    barrier = None if account.is_ours else traversable_by(account, root)
    if barrier is not None:
        raise Unavailable(
            f"PostgreSQL runs as {account.name}, which may not pass through {barrier} to reach "
            f"{root}. Choose another FAIRWAY_DATA_DIR, or allow it: chmod o+x {barrier}"
        )


def _require_ours(root: Path, account: Account) -> None:
    if root.stat().st_uid not in (account.uid, os.geteuid()):
        raise Unavailable(f"{root} belongs to another user: choose another FAIRWAY_DATA_DIR.")
    strangers = sorted(name for name in os.listdir(root) if name.split(".new-")[0] not in OUR_NAMES)
    if strangers and not (root / "VERSION").exists():
        raise Unavailable(
            f"{root} already holds other things ({', '.join(strangers[:3])}): PostgreSQL needs a "
            "folder for itself. Choose another FAIRWAY_DATA_DIR."
        )


def _holds_socket(chosen: Path) -> bool:
    """Short enough for the system, and plain enough to stand unquoted in a connection string."""
    path = os.fsencode(chosen / f".s.PGSQL.{PORT}")
    return len(path) <= SOCKET_PATH_BYTES_MAX and bool(re.fullmatch(rb"[\w./+-]+", path))


def _scratch(account: Account) -> Path:
    """The system's folder for temporary files, if the account can use it."""
    chosen = Path(tempfile.gettempdir()).resolve()
    reachable = traversable_by(account, chosen / "socket") is None
    return chosen if reachable and _holds_socket(chosen / f"fairway-{'0' * 16}") else Path("/tmp")
