"""Programs that mean harm, at every sandbox level: none gets out, none changes another's verdict.

An honest submission is judged beside each. The ordinary suite tries some of every kind at the
strongest level and one of each at the others; all of them run with `make judge-soak`.
"""

from __future__ import annotations

import ctypes
import os
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from examples.judge import cgroups, files, places
from examples.judge.judging import Judged, Trial, judge
from examples.judge.languages import LANGUAGES
from examples.judge.sandbox import Sandbox
from examples.judge.trouble import SandboxUnavailable
from examples.judge.verdicts import Limits
from examples.judge.walls import Level
from tests.acceptance.processes import command_of, tree
from tests.examples.hostile import Hostile
from tests.examples.hostile_bombs import BOMBS
from tests.examples.hostile_escapes import ESCAPES
from tests.examples.programs import C_ADD, EVERY, PYTHON, Program
from tests.examples.test_sandbox import SANDBOX

EVERYBODY = [*ESCAPES, *BOMBS]
QUICK = [one for one in EVERYBODY if one.is_quick]
SECRET = "fairway-secret"
MB = 1 << 20
TESTS = [Trial(b"20 22\n", b"42\n")]
SUBREAPER = 36


class Host(NamedTuple):
    """What a program could reach if a wall were missing."""

    names: dict[str, str]
    folder: Path

    def left(self) -> list[str]:
        """Whatever stayed behind: processes, zombies, cages, files."""
        cages = [*cgroups.ROOT.glob(f"{cgroups.NAME}/{os.getpid()}-*"),
                 *cgroups.ROOT.glob(f"*/{cgroups.NAME}-{os.getpid()}-*")]  # fmt: skip
        mine = [Path(self.names["@NEIGHBOUR@"]).name]
        entries = [one for one in os.listdir(self.folder) if one not in mine]
        commands = map(command_of, tree(os.getpid()))
        ours = [one for one in commands if not one.startswith("postgres: ")]  # of other tests
        return [*ours, *map(str, cages), *entries, *_strangers()]


def _strangers() -> list[str]:
    """Files in shared folders that belong to a submission's account."""
    found = []
    for folder in ("/tmp", "/dev/shm"):
        for entry in os.scandir(folder):
            with suppress(FileNotFoundError):  # others work there, too
                uid = entry.stat(follow_symlinks=False).st_uid
                is_place = entry.name.startswith(places.PREFIX)
                found += [entry.path for ids in places.RANGES if uid in ids and not is_place]
    return found


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    store = tmp_path_factory.mktemp("store")
    answer = store / "answer"
    answer.write_text("42")
    answer.chmod(0o644)
    store.chmod(0o755)  # only the sandbox's walls may keep a program from it
    with (
        tempfile.TemporaryDirectory(prefix="hostile-", dir="/tmp") as folder,
        socket.create_server(("127.0.0.1", 0)) as service,
        socket.socket(socket.AF_UNIX) as named,
        pytest.MonkeyPatch.context() as patch,
    ):
        os.chmod(folder, 0o711)
        patch.setattr(tempfile, "tempdir", folder)
        patch.setenv("FAIRWAY_API_KEY", SECRET)
        named.bind(f"\0{SECRET}-{os.getpid()}")
        named.listen()
        with places.opened() as neighbour, _orphans_come_here():
            os.chmod(neighbour.folder, 0o777)
            (neighbour.folder / SECRET).touch()
            names = {
                "@STORE@": str(store), "@ANSWER@": str(answer), "@SECRET@": SECRET,
                "@NEIGHBOUR@": str(neighbour.folder), "@PORT@": str(service.getsockname()[1]),
                "@SOCKET@": f"{SECRET}-{os.getpid()}", "@JUDGE@": str(os.getpid()),
            }  # fmt: skip
            yield Host(names, Path(folder))


class _orphans_come_here:
    """As in a worker's runner: what is not waited for stays as a zombie of ours."""

    def __enter__(self) -> None:
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)

    def __exit__(self, *error: object) -> None:
        ctypes.CDLL(None).prctl(SUBREAPER, 0, 0, 0, 0)


@pytest.fixture(scope="module", params=list(Level), ids=lambda level: str(level.value))
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    try:
        return Sandbox.find(request.param.value)
    except SandboxUnavailable as error:
        pytest.skip(str(error))


def try_out(sandbox: Sandbox, host: Host, program: Hostile) -> Judged:
    source = program.source
    for name, value in host.names.items():
        source = source.replace(name, value)
    limits = Limits(cpu_seconds=program.cpu_seconds, memory_bytes=program.memory_mb * MB)
    language = LANGUAGES[program.language]
    return judge(sandbox, language, source.encode(), TESTS * program.tests, limits)


def honest(sandbox: Sandbox, language: str) -> str:
    source = PYTHON[0].source if language == "python" else C_ADD
    judged = judge(sandbox, LANGUAGES[language], source.encode(), TESTS, Limits(cpu_seconds=3.0))
    return judged["verdict"]


def beside(sandbox: Sandbox, host: Host, program: Hostile) -> tuple[Judged, set[str]]:
    """The program's verdict, and those of an honest author meanwhile, who is there all the time."""
    neighbour = "c" if program.kind == "files" and LANGUAGES["c"].is_installed else "python"
    with ThreadPoolExecutor(1) as pool:
        judged = pool.submit(try_out, sandbox, host, program)
        verdicts = {honest(sandbox, neighbour)}
        while not judged.done():
            verdicts.add(honest(sandbox, neighbour))
        return judged.result(), verdicts


def holds(sandbox: Sandbox, host: Host, program: Hostile) -> None:
    if not LANGUAGES[program.language].is_installed:
        pytest.skip(f"{program.language} is not installed")
    before = Counter(host.left())
    judged, others = beside(sandbox, host, program)
    assert judged["verdict"] in program.verdicts, judged
    assert judged["sandbox"] == sandbox.level
    assert SECRET not in judged["detail"]
    assert others == {"accepted"}
    assert Counter(host.left()) - before == Counter()


def test_there_are_many_of_them() -> None:
    assert len(EVERYBODY) >= 60
    assert len({(one.kind, one.name) for one in EVERYBODY}) == len(EVERYBODY)
    assert {one.kind for one in EVERYBODY} - {one.kind for one in QUICK} == {"races"}


STRONGEST = "" if SANDBOX is None else SANDBOX.level
#: At the strongest level some of every kind, at the others one of each; the soak has all of them.
FIRST = {one.kind: one for one in reversed(QUICK)}
SOME = [
    pytest.param(level, one, id=f"{level.value}-{one.kind}: {one.name}")
    for level in Level
    for one in QUICK
    if level.value == STRONGEST or one is FIRST[one.kind]
]


@pytest.mark.parametrize(("sandbox", "program"), SOME, indirect=["sandbox"])
def test_some_of_every_kind_are_held(sandbox: Sandbox, host: Host, program: Hostile) -> None:
    holds(sandbox, host, program)


@pytest.mark.slow
@pytest.mark.parametrize("program", EVERYBODY, ids=lambda one: f"{one.kind}: {one.name}")
def test_all_of_them_are_held(sandbox: Sandbox, host: Host, program: Hostile) -> None:
    holds(sandbox, host, program)


@pytest.mark.slow
@pytest.mark.parametrize("program", EVERY, ids=lambda one: f"{one.language}: {one.name}")
def test_plain_verdicts_are_right_at_every_level(sandbox: Sandbox, program: Program) -> None:
    language = LANGUAGES[program.language]
    if not language.is_installed:
        pytest.skip(f"{language.needs} is not installed")
    limits = Limits(cpu_seconds=program.cpu_seconds, memory_bytes=program.memory_mb * MB)
    judged = judge(sandbox, language, program.source.encode(), TESTS, limits)
    assert judged["verdict"] == program.verdict, judged


def test_the_neighbour_could_be_seen_without_walls(host: Host) -> None:
    """Or the programs above would be held by nothing at all."""
    assert SECRET in os.listdir(host.names["@NEIGHBOUR@"])
    assert Path(host.names["@ANSWER@"]).read_text() == "42"
    with socket.create_connection(("127.0.0.1", int(host.names["@PORT@"])), 1):
        pass
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"\0{host.names['@SOCKET@']}")


def test_what_a_killed_judge_left_is_swept_away(host: Host) -> None:
    old, new = host.folder / f"{places.PREFIX}old", host.folder / f"{places.PREFIX}new"
    for folder in (old, new):
        (folder / "deep").mkdir(parents=True)
    long_ago = time.time() - 2 * places.OLD_SECONDS
    os.utime(old, (long_ago, long_ago))
    os.utime(host.names["@NEIGHBOUR@"], (long_ago, long_ago))  # old, and somebody works in it
    places.sweep()
    assert not old.exists()
    assert new.exists()
    assert Path(host.names["@NEIGHBOUR@"]).exists()
    (new / "deep").rmdir()
    new.rmdir()


def test_places_at_the_same_time_have_nothing_in_common(host: Host) -> None:
    with places.opened() as one, places.opened() as other:
        assert one.folder != other.folder
        assert one.folder.stat().st_mode & 0o077 == 0
        assert (one.uid != other.uid) == (os.geteuid() == 0)


async def test_the_store_is_closed_to_others(tmp_path: Path) -> None:
    for place in (tmp_path / "new", tmp_path / "was-open"):
        (tmp_path / "was-open").mkdir(exist_ok=True)
        (tmp_path / "was-open").chmod(0o755)
        await files.put(files.open_store(str(place)), b"expected: 42")
        assert place.stat().st_mode & 0o777 == 0o700
