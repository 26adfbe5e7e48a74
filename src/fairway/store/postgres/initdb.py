"""Making a database cluster, setting it up and launching its postmaster.

Everything here is one short program run or one file written. Waiting, and what to do when
something fails, is `embedded.py`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from fairway.core.errors import Unavailable
from fairway.store.postgres.binaries import Binaries
from fairway.store.postgres.data_folder import PORT, DataFolder, give, open_log, replace_text
from fairway.store.postgres.postmaster import mark_of
from fairway.store.postgres.processes import Process
from fairway.store.postgres.tuning import embedded_settings

ROLE = "fairway"

# Whoever reaches the socket is trusted. The socket lies in a folder of mode 0700, so that is the
# account of PostgreSQL itself and root, and either could read the data files anyway.
INITDB_OPTIONS = (
    "--auth=trust",
    f"--username={ROLE}",
    "--encoding=UTF8",
    # The same order of text on every machine, whatever its system libraries.
    "--locale-provider=builtin",
    "--locale=C.UTF-8",
    "--no-instructions",
)

HEADER = """\
# Written by Fairway at every start: changes here are lost.
# Put yours into postgresql.conf, below the line that includes this file.
"""


def create_cluster(folder: DataFolder, binaries: Binaries) -> None:
    """Make the cluster beside its place, then rename it: a half-made one is never started."""
    for remains in folder.root.glob("pgdata.new-*"):
        shutil.rmtree(remains, ignore_errors=True)
    fresh = Path(tempfile.mkdtemp(prefix="pgdata.new-", dir=folder.root))
    give(fresh, folder.account)
    _run_initdb(folder, binaries, fresh)
    with (fresh / "postgresql.conf").open("a") as settings:
        settings.write("\ninclude 'fairway.conf'\n")
    fresh.rename(folder.cluster)
    _sync(folder.root)


def write_settings(folder: DataFolder, processes: int) -> None:
    """Write our settings anew, so that they follow this machine and this release."""
    settings = embedded_settings(_memory_bytes(), len(os.sched_getaffinity(0)), processes)
    replace_text(folder.cluster / "fairway.conf", as_conf(settings), folder.account)


def as_conf(settings: Mapping[str, str]) -> str:
    quoted = {name: value.replace("'", "''") for name, value in settings.items()}
    return HEADER + "".join(f"{name} = '{value}'\n" for name, value in quoted.items())


def launch(
    folder: DataFolder,
    binaries: Binaries,
    socket_dir: Path,
    in_child: Callable[[], None] | None = None,
) -> Process:
    """Start the postmaster in its own session: Ctrl-C is for us, we stop it last."""
    arguments = (
        binaries.postgres,
        "-D",
        folder.cluster,
        "-k",
        socket_dir,
        "-p",
        str(PORT),
        "-c",
        "listen_addresses=",
        "-c",
        f"cluster_name={mark_of(folder.cluster)}",
    )
    log = open_log(folder)
    try:
        child = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            umask=0o077,
            env=_environment(),
            start_new_session=True,
            preexec_fn=in_child,  # as the account already: a change of user would undo it
            **folder.account.process_options(),
        )
    finally:
        os.close(log)
    return Process(child.pid, child)


def _run_initdb(folder: DataFolder, binaries: Binaries, fresh: Path) -> None:
    """In its own session, too: cut short by Ctrl-C it would fail, and fill the screen with why."""
    made = subprocess.run(
        (binaries.initdb, "-D", fresh, *INITDB_OPTIONS),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
        env=_environment(),
        check=False,
        start_new_session=True,
        **folder.account.process_options(),
    )
    if made.returncode != 0:
        shutil.rmtree(fresh, ignore_errors=True)
        raise Unavailable(f"PostgreSQL could not make a database in {folder.root}:\n{made.stdout}")


def _environment() -> dict[str, str]:
    """Nothing of ours: a stray PGDATA or LC_ALL must not reach PostgreSQL."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}


def _memory_bytes() -> int:
    """What this machine, or the container we are in, has."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return machine
    return min(machine, int(limit)) if limit.isdecimal() else machine


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
