"""From `"module:name"` or `"path/to/file.py:name"` to the object it names, with plain errors.

The current folder is put on `sys.path`, as `python -m` does. Errors raised by the loaded module
itself are left as they are, unless it is loaded for a person to read what is wrong (`plainly`).
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from types import FunctionType, ModuleType, TracebackType
from typing import Any

#: By these a module may have names that its text does not show.
_MAKES_NAMES = re.compile(r"\b(__getattr__|globals|exec|setattr|sys\.modules|vars|locals)\b")
_IMPORTING = ("<frozen ", importlib.__file__)


class LoadError(ImportError):
    """The target names nothing that can be loaded."""


class NotAnApp(LoadError, TypeError):
    """The target names something else than an app."""


def look_for(target: str) -> None:
    """LoadError for a target that is plainly a slip; runs nothing of it."""
    place, name = _split(target)
    if place.endswith(".py"):
        path: Path | None = Path(place)
        _check_file(Path(place))
    else:
        path = look_for_module(place)
    bound = None if path is None else _names_in(path)
    if bound is None or name.partition(".")[0] in bound:
        return
    if own := [one for one, is_imported in bound.items() if not is_imported]:
        raise _no_name(name, place, own)
    # A file of imports alone: one of them fails, perhaps, as whoever loads it hears.


def look_for_module(name: str) -> Path | None:
    """Its file, if it is one of Python; LoadError when there plainly is none. Runs nothing."""
    folders: Sequence[str] | None = [str(Path.cwd()), *sys.path]
    spec = None
    for end in range(1, name.count(".") + 2):
        part = ".".join(name.split(".")[:end])
        try:
            spec = None if folders is None else PathFinder.find_spec(part, folders)
        except KeyError:  # below a folder without __init__.py: only who loads it can tell
            return None
        if spec is None and end == 1 and _is_found_otherwise(part):
            return None
        if spec is None:
            raise _no_module(part)
        folders = spec.submodule_search_locations
    origin = None if spec is None else spec.origin
    return Path(origin) if origin is not None and origin.endswith(".py") else None


def _is_found_otherwise(name: str) -> bool:
    """By other means than a file in a folder: it is built in, or an installer has its own way."""
    return name in sys.modules or (name != "" and importlib.util.find_spec(name) is not None)


def _names_in(path: Path) -> dict[str, bool] | None:
    """What a module binds, as far as its text says, and whether it only imports that; None when it
    cannot be told for sure."""
    text = path.read_text("utf-8", "replace")
    is_plain = path.name != "__init__.py" and not _MAKES_NAMES.search(text)
    try:
        names = dict(_bound(ast.parse(text).body)) if is_plain else {"*": True}
    except (SyntaxError, ValueError):  # whoever loads it hears of that with its line
        return None
    return None if "*" in names else names


def _bound(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, bool]]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, False
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0], True
        elif isinstance(node, ast.Name):
            yield from [(node.id, False)] if isinstance(node.ctx, ast.Store) else []
        else:
            yield from _bound(ast.iter_child_nodes(node))


def load_object(target: str) -> Any:
    place, name = _split(target)
    found: Any = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    for part in name.split("."):
        found = _attribute(found, part, place)
    return found


@contextmanager
def plainly(target: str) -> Iterator[None]:
    """What the app itself raises is a LoadError, too: its stack, from the app's first line on."""
    try:
        yield
    except LoadError:
        raise
    except Exception as error:
        stack = _below_loading(error.__traceback__)
        words = "".join(traceback.format_exception(type(error), error, stack)).rstrip()
        raise LoadError(f"{target} could not be loaded:\n{words}") from error


def _below_loading(stack: TracebackType | None) -> TracebackType | None:
    """From the first line of what was loaded on; None: it has none, as Python could not read it."""
    found = stack
    while stack is not None:
        file, stack = stack.tb_frame.f_code.co_filename, stack.tb_next
        if file == __file__:
            found = stack
    while found and found.tb_frame.f_code.co_filename.startswith(_IMPORTING):
        found = found.tb_next
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
        own = [one for one, value in vars(found).items() if not _is_imported(value, found)]
        raise _no_name(name, place, own) from None


def _is_imported(value: Any, where: Any) -> bool:
    """Modules, and classes and functions of others: what an app is called is not among them."""
    if not isinstance(value, ModuleType | type | FunctionType):
        return False
    home = "__name__" if isinstance(where, ModuleType) else "__module__"
    return getattr(value, "__module__", "") != getattr(where, home, "")


def _no_name(name: str, place: str, names: Iterable[str]) -> LoadError:
    has = ", ".join(sorted(n for n in names if not n.startswith("_"))) or "nothing"
    return LoadError(f"{place} has no {name!r}; it has {has}")


def _add_to_path(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
