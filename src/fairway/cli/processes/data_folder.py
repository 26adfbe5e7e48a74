"""The data folder: all state of a Fairway on one machine, for nobody else to look into."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from pathlib import Path

from fairway.store.postgres.os_user import account_for, traversable_by

OWNER_ONLY = 0o700
#: In every folder that we made. Keys and a database are nothing for a repository, either.
MARK, MARK_TEXT = ".gitignore", "*\n"


def make_data_folder(folder: Path) -> None:
    """Where there is none. One that somebody else made stays as it is."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=OWNER_ONLY, exist_ok=True)
        (folder / MARK).write_text(MARK_TEXT)


def is_ours(folder: Path) -> bool:
    """Whether we made it: a folder that somebody chose may hold other things, or be all of /tmp."""
    try:
        return (folder / MARK).read_text() == MARK_TEXT
    except (OSError, UnicodeDecodeError):
        return False


def close_to_others(folder: Path, *, has_postgres: bool) -> None:
    """A folder that we made is for us alone; as root, PostgreSQL's account may pass through it."""
    if not is_ours(folder) or folder.stat().st_uid != os.geteuid():
        return
    account = account_for(folder.resolve() / "postgres") if has_postgres else None
    if account is None or account.is_ours:
        folder.chmod(OWNER_ONLY)
    else:
        os.chown(folder, -1, account.gid)
        folder.chmod(OWNER_ONLY | stat.S_IXGRP)


def postgres_folder(data_dir: Path) -> Path:
    """Inside the data folder; as root, elsewhere if PostgreSQL's own user could not enter there."""
    folder = data_dir.resolve() / "postgres"
    blocked = traversable_by(account_for(folder), folder)
    if blocked is None:
        return folder
    name = hashlib.sha256(str(folder).encode()).hexdigest()[:12]
    elsewhere = Path("/var/lib/fairway") / name
    sys.stderr.write(f"PostgreSQL's user may not enter {blocked}; its data is in {elsewhere}\n")
    return elsewhere
