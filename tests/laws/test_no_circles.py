"""No circles between modules: each file can be read after what it leans on.

Every import counts: one inside a function or for type checkers only is a way a reader has to
follow, too. A package stands for its `__init__` and is leant on only by who names it: that Python
runs `__init__` files on the way to a module is no import of theirs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

import pytest
from tests.laws.source import trees, walk

Graph = Mapping[str, set[str]]


def test_no_module_leans_on_itself_by_way_of_others() -> None:
    graph = _graph(trees())
    assert sum(map(len, graph.values())) > 1000
    assert [" → ".join(circle) for circle in _circles(graph)] == []


@pytest.mark.parametrize(
    "back",
    [
        "from fairway.a import A",
        "import fairway.a",
        "from fairway import a",
        "from . import a",
        "def f():\n    from .a import A",
        "if TYPE_CHECKING:\n    from fairway.a import A",
        "import_module('fairway.a')",
    ],
)
def test_a_circle_is_seen_however_it_is_closed(back: str) -> None:
    sources = {"a.py": "from fairway.b import B", "b.py": "from fairway.c.d import D"}
    sources |= {"__init__.py": "from fairway.a import A", "c/__init__.py": ""}
    ways_home = {"c/d.py": "", "e.py": back}
    open_trees = {name: ast.parse(text) for name, text in (sources | ways_home).items()}
    assert _circles(_graph(open_trees)) == []
    closed = open_trees | {"b.py": ast.parse("from fairway.e import E")}
    assert _circles(_graph(closed)) == [["a.py", "b.py", "e.py", "a.py"]]


def _graph(sources: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """Module to modules, each by its path inside the package."""
    return {
        name: {found for dotted in _named(name, tree) for found in _files_of(dotted, sources)}
        for name, tree in sources.items()
    }


def _named(name: str, tree: ast.Module) -> Iterator[str]:
    """What a file imports, by dotted names: of modules, or of things in one."""
    for node in walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                home = ["fairway", *name.split("/")][:-level] if level else []
                here = ".".join([*home, *([module] if module else [])])
                yield from (f"{here}.{alias.name}" for alias in names)
            case ast.Call(
                func=ast.Name(id="import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                yield module


def _files_of(dotted: str, sources: Mapping[str, ast.Module]) -> list[str]:
    """The file of the module, of the package, or of the module that has the thing."""
    first, *rest = dotted.split(".")
    if first != "fairway":
        return []
    whole, above = "/".join(rest), "/".join(rest[:-1])
    places = [f"{place}{end}" for place in (whole, above) for end in (".py", "/__init__.py")]
    return [place.lstrip("/") for place in places if place.lstrip("/") in sources][:1]


def _circles(graph: Graph) -> list[list[str]]:
    """The shortest circle through each module that is on one; each circle once."""
    found: dict[frozenset[str], list[str]] = {}
    for name in sorted(graph):
        circle = _way_home(name, graph)
        if circle:
            found.setdefault(frozenset(circle), circle)
    return list(found.values())


def _way_home(start: str, graph: Graph) -> list[str]:
    came_from: dict[str, str] = {}
    edge = [start]
    while edge and start not in came_from:
        steps = [(name, there) for name in edge for there in sorted(graph[name])]
        edge = []
        for name, there in steps:
            if there not in came_from:
                came_from[there] = name
                edge.append(there)
    if start not in came_from:
        return []
    way = [start, came_from[start]]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return way[::-1]
