"""The languages: what a source is called, how it is compiled, how it runs, who runs it."""

from __future__ import annotations

import shutil
from typing import NamedTuple

from examples.judge.verdicts import Limits

MB = 1 << 20


class Language(NamedTuple):
    name: str
    source: str  # the file's name
    compile: tuple[str, ...]  # empty: nothing to compile
    run: tuple[str, ...]
    needs: str  # the program without which there is no such language here
    pool: str
    extra_processes: int = 0  # threads of the runtime itself
    own_memory: bool = False  # the runtime keeps to its limit itself; its address space is larger

    @property
    def is_installed(self) -> bool:
        return shutil.which(self.needs, path="/usr/bin:/bin") is not None

    def run_words(self, limits: Limits) -> tuple[str, ...]:
        heap = f"{max(16, (limits.memory_bytes // MB) * 3 // 4)}m"
        return tuple(word.replace("{heap}", heap) for word in self.run)


COMPILING = Limits(cpu_seconds=10.0, memory_bytes=768 * MB, output_bytes=64 * MB, processes=64)

LANGUAGES = {
    language.name: language
    for language in (
        Language("python", "main.py", (), ("/usr/bin/python3", "-I", "main.py"),
                 "python3", "python"),
        Language("c", "main.c", ("/usr/bin/gcc", "-O2", "-std=c17", "-o", "main", "main.c", "-lm"),
                 ("./main",), "gcc", "c"),
        Language("cpp", "main.cpp", ("/usr/bin/g++", "-O2", "-std=c++20", "-o", "main", "main.cpp"),
                 ("./main",), "g++", "cpp"),
        Language("java", "Main.java",
                 ("/usr/bin/javac", "-J-Xmx256m", "-J-XX:+UseSerialGC", "Main.java"),
                 ("/usr/bin/java", "-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                  "-Xshare:auto", "Main"),
                 "javac", "java", extra_processes=48, own_memory=True),
    )
}  # fmt: skip


def installed() -> list[str]:
    return [name for name, language in LANGUAGES.items() if language.is_installed]
