"""What a power cut would leave: watches what the operating system is asked to make safe.

A name is safe when its folder was synced after the name was made, and so was every folder above
it; a file's bytes are safe when it was synced after the last of them and before it got its name.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


class Disk:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[tuple[str, str]] = []
        self.before_sync: Callable[[str], None] = lambda path: None
        self._lock = threading.Lock()
        self._watch(monkeypatch, "mkdir", self._made)
        self._watch(monkeypatch, "rename", self._renamed)
        self._watch(monkeypatch, "write", self._written)
        really_sync = os.fsync

        def fsync(file: int) -> None:
            path = os.readlink(f"/proc/self/fd/{file}")
            self.before_sync(path)
            really_sync(file)
            self._note("synced", path)

        monkeypatch.setattr(os, "fsync", fsync)

    def _watch(self, monkeypatch: pytest.MonkeyPatch, name: str, note: Callable[..., None]) -> None:
        really = getattr(os, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            found = really(*args, **kwargs)
            note(*args)
            return found

        monkeypatch.setattr(os, name, watched)

    def _made(self, path: Any, *_: Any) -> None:
        self._note("named", os.path.abspath(path))

    def _renamed(self, old: Any, new: Any) -> None:
        with self._lock:  # side by side, whoever else does something
            self.events += [("left", os.path.abspath(old)), ("named", os.path.abspath(new))]

    def _written(self, file: int, *_: Any) -> None:
        self._note("written", os.readlink(f"/proc/self/fd/{file}"))

    def _note(self, what: str, path: str) -> None:
        with self._lock:
            self.events.append((what, path))

    def is_safe(self, path: Path, root: Path) -> bool:
        """Whether this object, and all that leads to it below the root, survives a power cut."""
        events = list(self.events)
        named = max(n for n, event in enumerate(events) if event == ("named", str(path)))
        part = events[named - 1][1]
        return _bytes_are_safe(events[:named], part) and all(
            _name_is_safe(events, one)
            for one in (path, *path.parents)
            if one != root and one.is_relative_to(root)
        )


def _bytes_are_safe(events: list[tuple[str, str]], part: str) -> bool:
    mine = [what for what, path in events if path == part and what in ("written", "synced")]
    return not mine or mine[-1] == "synced"  # a link to what was safe before has none


def _name_is_safe(events: list[tuple[str, str]], path: Path) -> bool:
    named = [n for n, event in enumerate(events) if event == ("named", str(path))]
    return not named or ("synced", str(path.parent)) in events[named[-1] :]
