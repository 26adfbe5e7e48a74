"""From `"module:name"` or `"path/to/file.py:name"` to the object it names, with plain errors.

The current folder is put on `sys.path`, as `python -m` does. Errors raised by the loaded module
itself are left as they are.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any


class LoadError(ImportError):
    """The target names nothing that can be loaded."""


class NotAnApp(LoadError, TypeError):
    """The target names something else than an app."""


def look_for(target: str) -> None:
    """LoadError for a target that is plainly a slip; runs nothing of it."""
    place, _ = _split(target)
    if place.endswith(".py"):
        _check_file(Path(place))
        return
    top = place.partition(".")[0]
    if top not in sys.modules and PathFinder.find_spec(top, [str(Path.cwd()), *sys.path]) is None:
        raise _no_module(top)


def load_object(target: str) -> Any:
    place, name = _split(target)
    found: Any = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    for part in name.split("."):
        found = _attribute(found, part, place)
    return found


def _split(target: str) -> tuple[str, str]:
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise LoadError(f"{target!r} is not of the form 'module:name' or 'file.py:name'")
    return place, name


def _no_module(name: str) -> LoadError:
    return LoadError(f"there is no module {name!r} (looked from {Path.cwd()})")


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise LoadError(f"there is no file {path} (looked from {Path.cwd()})")


def _load_module(name: str) -> ModuleType:
    _add_to_path(Path.cwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Only when the target itself is missing; a missing import inside it keeps its own error.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise _no_module(error.name) from error


def _load_file(path: Path) -> ModuleType:
    _check_file(path)
    _add_to_path(path.resolve().parent)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise LoadError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _attribute(found: Any, name: str, place: str) -> Any:
    try:
        return getattr(found, name)
    except AttributeError:
        names = ", ".join(sorted(n for n in vars(found) if not n.startswith("_"))) or "nothing"
        raise LoadError(f"{place} has no {name!r}; it has {names}") from None


def _add_to_path(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
