"""Two PostgreSQL servers on loopback, as two machines would have them, and the runbook's blocks."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.acceptance.house import free_port
from tests.acceptance.processes import command_of, send, tree

from fairway.store.postgres.binaries import CACHE_DIR, usable_binaries
from fairway.store.postgres.os_user import Account, account_for

ROOT = Path(__file__).parents[3]
SECTION = (ROOT / "docs/OPERATING.md").read_text("utf-8").partition("### A standby of the")[2]
BLOCKS = re.findall(r"```sh\n# (\d).*?\n(.*?)```", SECTION, re.DOTALL)
SUPERUSER = "postgres"
CONF = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
shared_buffers = '64MB'
max_wal_size = '1GB'
"""


class Node:
    """One of the two: a data folder and a port."""

    def __init__(self, folder: Path, port: int, account: Account) -> None:
        self.folder = folder
        self.port = port
        self._account = account

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def dsn(self) -> str:
        return f"postgresql://{SUPERUSER}@{self.host}/postgres"

    @property
    def place(self) -> str:
        return f"host=127.0.0.1 port={self.port}"

    async def run(self, words: str, environment: Mapping[str, str]) -> str:
        """As the account of PostgreSQL; the port is the machine's, not the configuration's."""
        given = {**environment, "PGPORT": str(self.port), "LC_ALL": "C.UTF-8"}
        log = self.folder.parent / f"{self.port}.said"
        with log.open("ab") as file:  # a pipe would be held open by the server that is started
            program = await asyncio.create_subprocess_exec(
                "sh", "-e", "-c", words, cwd="/", env=given, stdin=subprocess.DEVNULL,
                stdout=file, stderr=file, start_new_session=True,
                **self._account.process_options(),
            )  # fmt: skip
            code = await asyncio.wait_for(program.wait(), 90)
        said = await asyncio.to_thread(log.read_text)
        assert code == 0, f"{words}\n{said[-3000:]}"
        return said

    def kill(self) -> None:
        """kill -9 of the postmaster and of all that it started."""
        pid = self.pid()
        if pid is not None:
            for one in (pid, *tree(pid)):
                send(one, signal.SIGKILL)

    def process(self, kind: str) -> int:
        """One of its processes, by the name that it gives itself."""
        pid = self.pid()
        assert pid is not None
        (found,) = [one for one in tree(pid) if kind in command_of(one)]
        return found

    def pid(self) -> int | None:
        file = self.folder / "postmaster.pid"
        return int(file.read_text().split()[0]) if file.exists() else None


class Pair:
    def __init__(self, room: Path) -> None:
        self.account = account = account_for(room / "absent")
        self.programs = usable_binaries(None, account, CACHE_DIR).folder
        place = room / "pair"
        place.mkdir()
        os.chown(place, account.uid, account.gid)
        self.primary = Node(place / "primary", free_port(), account)
        self.standby = Node(place / "standby", free_port(), account)

    @property
    def dsn(self) -> str:
        """As the runbook has it: both hosts, the old primary first."""
        hosts = f"{self.primary.host},{self.standby.host}"
        return f"postgresql://{SUPERUSER}@{hosts}/postgres?target_session_attrs=read-write"

    async def found(self) -> None:
        words = (
            f"initdb --pgdata {self.primary.folder} --username {SUPERUSER} --auth trust"
            f" && printf '%s' \"$CONF\" >> {self.primary.folder}/postgresql.conf"
        )
        await self.primary.run(words, {**self.variables(), "CONF": CONF})
        await self.start(self.primary)

    async def start(self, node: Node) -> None:
        words = f"pg_ctl --pgdata {node.folder} --log {node.folder}.log --wait start"
        await node.run(words, self.variables())

    async def stop(self, node: Node) -> None:
        await node.run(f"pg_ctl --pgdata {node.folder} --mode fast stop", self.variables())

    async def block(self, number: int, node: Node, **others: str) -> str:
        """One of the page's, as it stands."""
        (words,) = [text for found, text in BLOCKS if found == str(number)]
        return await node.run(words, {**self.variables(), **others})

    def variables(self) -> dict[str, str]:
        return {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "PRIMARY": self.primary.place,
            "STANDBY": self.standby.place,
            "PRIMARY_DATA": str(self.primary.folder),
            "STANDBY_DATA": str(self.standby.folder),
            "SUPERUSER": SUPERUSER,
            "REPLICATION_PASSWORD": "seven-words-of-its-own",
        }

    def close(self) -> None:
        self.primary.kill()
        self.standby.kill()
