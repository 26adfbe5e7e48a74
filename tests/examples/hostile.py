"""Programs that mean harm, as data: what each tries, and the verdicts that say it got nowhere.

Most try one thing and print the right answer only if they were refused; so `accepted` means held.
Names between @ signs stand for things of the host, filled in by the test.
"""

from __future__ import annotations

import platform
from typing import NamedTuple

from examples.judge.seccomp import MACHINES, REFUSED


class Hostile(NamedTuple):
    kind: str
    name: str
    source: str
    verdicts: tuple[str, ...] = ("accepted",)
    language: str = "python"
    cpu_seconds: float = 4.0  # far more than it takes, even where the machine stands still
    memory_mb: int = 64
    tests: int = 1
    is_quick: bool = False  # of the ordinary suite as well


ADD = "a, b = map(int, input().split())\nprint(a + b)\n"
PRELUDE = (
    "import ctypes, glob, os, resource, shutil, signal, socket, subprocess, sys, threading, time\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
)
COLUMN = MACHINES.get(platform.machine(), (0, 0))[1]
NUMBERS = {name: numbers[COLUMN] for name, numbers in REFUSED.items()}


def tries(expression: str, before: str = "") -> str:
    """Refused is what raises, or has an answer that counts as no."""
    return (
        f"{PRELUDE}{before}\ntry:\n    got = {expression}\nexcept (OSError, ValueError):\n"
        "    got = None\nprint('out', got) if got else print(42)\n"
    )


def calls(name: str, *arguments: object) -> str:
    """A system call by its number, refused with EPERM and with nothing else."""
    words = ", ".join(map(str, (NUMBERS[name], *arguments)))
    return tries(f"libc.syscall({words}) != -1 or ctypes.get_errno() != 1")
