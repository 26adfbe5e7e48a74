"""What a user may import is a list: sorted, complete, cheap and quiet."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import types

import pytest

import fairway
import fairway.testing

PUBLIC: types.ModuleType = fairway  # as a program has it: type checkers read something else


def names_of(module: types.ModuleType) -> set[str]:
    return {
        name
        for name in dir(module)
        if not name.startswith("_") and not isinstance(getattr(module, name), types.ModuleType)
    }


def test_the_names_are_sorted_and_are_the_namespace() -> None:
    assert PUBLIC.__all__ == sorted(PUBLIC.__all__)
    assert fairway.testing.__all__ == sorted(fairway.testing.__all__, key=_ruff_order)
    for module in (PUBLIC, fairway.testing):
        assert set(module.__all__) == names_of(module)


def test_what_type_checkers_read_is_what_programs_get() -> None:
    source = ast.parse(inspect.getsource(fairway))
    read = [
        (found.module, name.name, name.asname)
        for found in ast.walk(source)
        if isinstance(found, ast.ImportFrom) and found.module and found.module[:8] == "fairway."
        for name in found.names
    ]
    assert sorted(name for _, name, _ in read) == PUBLIC.__all__
    for module, name, exported in read:
        assert exported == name, "imported as itself, or it is no name of the package's"
        assert getattr(PUBLIC, name) is getattr(sys.modules[module], name)
    with pytest.raises(AttributeError, match="'fairway' has no attribute 'Appp'"):
        _ = PUBLIC.Appp


def _ruff_order(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, as the linter sorts them."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def in_a_fresh_process(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def test_import_starts_nothing_and_configures_nothing() -> None:
    code = (
        "from fairway import *; import threading, logging, sys;"
        "sys.stdout.write(f'{threading.active_count()} {len(logging.root.handlers)}')"
    )
    assert in_a_fresh_process(code) == "1 0"


def test_import_brings_only_what_it_needs() -> None:
    code = (
        "from fairway import *; import fairway.testing, sys;"
        "names = {name.partition('.')[0] for name in sys.modules};"
        "names |= {n for n in sys.modules if n.startswith('fairway.')};"
        "sys.stdout.write(' '.join(sorted(names)))"
    )
    loaded = set(in_a_fresh_process(code).split())
    assert "httpx2" not in loaded
    assert not loaded & {"asyncpg", "starlette", "structlog", "uvicorn", "pydantic"}
    assert {n.split(".")[1] for n in loaded if n.startswith("fairway.")} == {
        "core",
        "sdk",
        "testing",
        "wire",
    }


def test_the_plugin_never_brings_the_server() -> None:
    code = (
        "import fairway.sdk.pytest_plugin, sys;"
        "sys.stdout.write(' '.join(n for n in sys.modules if n.startswith('fairway.')))"
    )
    parts = {name.split(".")[1] for name in in_a_fresh_process(code).split()}
    assert parts <= {"core", "sdk", "wire"}


def test_import_is_quick() -> None:
    """Counted, not timed, which says more of the machine: 215 modules take a tenth of a second."""
    code = (
        "import sys; before = len(sys.modules); from fairway import *;"
        "sys.stdout.write(str(len(sys.modules) - before))"
    )
    assert int(in_a_fresh_process(code)) < 250
