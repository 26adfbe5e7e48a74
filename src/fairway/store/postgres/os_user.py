"""Who PostgreSQL runs as: ourselves, or an unprivileged account when we are root.

PostgreSQL refuses to run as root, and rightly. This file chooses the account and says which
folder keeps it out; it never loosens the permissions of a folder that it did not make.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEDICATED_NAME = "fairway-pg"
ACCOUNTS_FOLDER = "/etc"


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    uid: int
    gid: int

    @property
    def is_ours(self) -> bool:
        """Whether it is the account that this process already runs under."""
        return self.uid == os.geteuid()

    def process_options(self) -> dict[str, Any]:
        """What `subprocess` needs to start a program as this account, without our groups."""
        return {} if self.is_ours else {"user": self.uid, "group": self.gid, "extra_groups": []}


def account_for(data_dir: Path) -> Account:
    """The account for a data folder: its owner if it has one, else one kept for PostgreSQL."""
    if os.geteuid() != 0:
        return _account_of(os.geteuid(), os.getegid())
    owner = _owner_of(data_dir)
    if owner is not None and owner.uid != 0:
        return owner
    return _named(DEDICATED_NAME) or _created() or _nobody()


def traversable_by(account: Account, path: Path) -> Path | None:
    """The first folder above `path` that keeps the account out, or None when the way is free.

    Mode bits decide; access lists are not consulted.
    """
    for parent in reversed(path.resolve().parents):
        try:
            facts = parent.stat()
        except FileNotFoundError:
            return None  # we shall make the rest ourselves
        if not _may_pass(account, facts):
            return parent
    return None


def _may_pass(account: Account, facts: os.stat_result) -> bool:
    if account.uid == 0:
        return True
    if facts.st_uid == account.uid:
        return bool(facts.st_mode & stat.S_IXUSR)
    if facts.st_gid == account.gid:
        return bool(facts.st_mode & stat.S_IXGRP)
    return bool(facts.st_mode & stat.S_IXOTH)


def _owner_of(path: Path) -> Account | None:
    try:
        facts = path.stat()
    except FileNotFoundError:
        return None
    return _account_of(facts.st_uid, facts.st_gid)


def _account_of(uid: int, gid: int) -> Account:
    try:
        return Account(pwd.getpwuid(uid).pw_name, uid, gid)
    except KeyError:
        return Account(str(uid), uid, gid)  # a container may run under a number without a name


def _named(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(name, entry.pw_uid, entry.pw_gid)


def _created() -> Account | None:
    """A new system account, where the system lets us make one."""
    useradd = shutil.which("useradd") or shutil.which("useradd", path="/usr/sbin:/sbin")
    if useradd is None:
        return None
    arguments = ["--system", "--user-group", "--no-create-home", "--home-dir", "/"]
    with _one_makes_accounts():
        if found := _named(DEDICATED_NAME):  # another start made it a moment ago
            return found
        subprocess.run(
            [useradd, *arguments, "--shell", "/bin/false", DEDICATED_NAME],
            check=False,  # only whether the account is there counts
            capture_output=True,
        )
        return _named(DEDICATED_NAME)


@contextmanager
def _one_makes_accounts() -> Iterator[None]:
    """One start at a time. `useradd` asks whether a name is taken before it waits for its own lock:
    of two at once the second gives the account another number, and whatever the first has done with
    its number belongs to nobody."""
    descriptor = os.open(ACCOUNTS_FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _nobody() -> Account:
    return _named("nobody") or Account("nobody", 65534, 65534)
