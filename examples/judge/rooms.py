"""An own root and own namespaces, where there is no bubblewrap to make them.

It runs apart from the judge, `python3 -I -S -c <this text and a call of main>`, as the account that
the program gets, and needs no privilege: a user namespace gives it what it takes to build, and the
first program that it starts has none of that any more. Linux 5.12 or newer.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket

TYPE_CHECKING = False  # the module `typing` takes longer to load than a short program runs
if TYPE_CHECKING:
    from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
#: user, mount, process, network, IPC, UTS and control group namespaces
OWN_NAMESPACES = 0x10000000 | 0x20000 | 0x20000000 | 0x40000000 | 0x8000000 | 0x4000000 | 0x2000000
NOBODY = 65534
SET_PARENT_DEATH_SIGNAL = 1
PRIVATE, RECURSIVE, BIND, NO_SUID, NO_DEVICES, NO_PROGRAMS = 1 << 18, 0x4000, 0x1000, 2, 4, 8
DETACH = 2
READ_ONLY = 1
MOUNT_SETATTR, EVERY_MOUNT_BELOW, HERE = 442, 0x8000, -100
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
DEVICES = ("null", "zero", "full", "random", "urandom")
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}


class Attributes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "spread", "user_space"))


def main(plan: dict[str, Any], words: list[str]) -> None:
    os.umask(0o022)
    uid, gid = os.getuid(), os.getgid()
    _must(LIBC.unshare(OWN_NAMESPACES), "unshare")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{NOBODY} {uid} 1")
    _write("/proc/self/gid_map", f"{NOBODY} {gid} 1")
    _die_with_parent()
    first = os.fork()
    if first == 0:
        _die_with_parent()
        os.setsid()
        _build(plan)
        os.execve(words[0], words, ENVIRONMENT)
    _, status = os.waitpid(first, 0)
    os._exit(0 if status == 0 else 1)


def _build(plan: dict[str, Any]) -> None:
    root = plan["base"]
    _mount("none", "/", "", PRIVATE | RECURSIVE)
    _memory(root, "mode=755,size=1m")
    for path in plan["seen"]:
        _show(path, root + path, READ_ONLY | NO_SUID | NO_DEVICES)
    for name in plan["links"]:
        os.symlink(f"usr/{name}", f"{root}/{name}")
    _show(plan["folder"], root + "/box", NO_SUID | NO_DEVICES | (0 if plan["may_write"] else 1))
    _processes(root + "/proc")
    _devices(root + "/dev", plan["shared_bytes"])
    os.mkdir(root + "/tmp")
    _memory(root + "/tmp", f"mode=1777,size={plan['scratch_bytes']},nr_inodes=4k")
    socket.sethostname("judge")
    os.chdir(root)
    _must(LIBC.syscall(PIVOT_ROOT[os.uname().machine], b".", b"."), "pivot_root")
    _must(LIBC.umount2(b".", DETACH), "umount of the host's root")
    _set("/", READ_ONLY)
    os.chdir("/box")


def _processes(place: str) -> None:
    os.mkdir(place)
    _mount("proc", place, "proc", NO_SUID | NO_DEVICES | NO_PROGRAMS)
    _write(place + "/sys/user/max_user_namespaces", "0")
    _set(place, READ_ONLY)


def _devices(place: str, shared_bytes: int) -> None:
    os.mkdir(place)
    _memory(place, "mode=755,size=64k")
    for name in DEVICES:
        os.close(os.open(f"{place}/{name}", os.O_CREAT | os.O_WRONLY))
        _mount(f"/dev/{name}", f"{place}/{name}", "", BIND)
    os.symlink("/proc/self/fd", place + "/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"{place}/{name}")
    os.mkdir(place + "/shm")
    _memory(place + "/shm", f"mode=1777,size={shared_bytes},nr_inodes=1k")
    _set(place, READ_ONLY)


def _show(source: str, place: str, attributes: int) -> None:
    """A part of the host, and nothing on it that the host's would allow and these do not."""
    if os.path.isdir(source):
        os.makedirs(place)
    else:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY))
    _mount(source, place, "", BIND | RECURSIVE)
    _set(place, attributes, EVERY_MOUNT_BELOW)


def _memory(place: str, options: str) -> None:
    _mount("tmpfs", place, "tmpfs", NO_SUID | NO_DEVICES, options)


def _mount(source: str, place: str, kind: str, flags: int, options: str = "") -> None:
    number = ctypes.c_ulong(flags)
    texts = [one.encode() for one in (source, place, kind)]
    _must(LIBC.mount(*texts, number, options.encode()), f"mount of {source} on {place}")


def _set(place: str, attributes: int, reach: int = 0) -> None:
    wanted = Attributes(attributes)
    size = ctypes.c_size_t(ctypes.sizeof(wanted))
    answer = LIBC.syscall(
        MOUNT_SETATTR, HERE, place.encode(), ctypes.c_uint(reach), ctypes.byref(wanted), size
    )
    _must(answer, f"mount attributes of {place}")


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _die_with_parent() -> None:
    LIBC.prctl(SET_PARENT_DEATH_SIGNAL, ctypes.c_ulong(signal.SIGKILL))


def _must(answer: int, what: str) -> None:
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
