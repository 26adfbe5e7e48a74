"""The drawing of the layers (`docs/images/layers.svg`) shows what the imports say.

Imports for type checkers count, too: a reader has to follow them.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import PurePath

from tests.laws.source import ROOT, trees, walk

DRAWING = ROOT / "docs/images/layers.svg"
Arrow = tuple[str, str]


def test_every_layer_and_package_is_drawn() -> None:
    packages = {str(PurePath(name).parent) for name in trees() if name.endswith("/__init__.py")}
    assert _drawn("layer") == {name for name in packages if "/" not in name}
    assert _drawn("package") == {name for name in packages if "/" in name}


def test_arrows_are_those_of_the_imports() -> None:
    """But for those that another way implies."""
    arrows = _arrows(1)
    implied = {(a, c) for a, b in arrows for c in _below(b, arrows) if (a, c) in arrows}
    assert {tuple(arrow.split()) for arrow in _drawn("arrow")} == arrows - implied


def test_no_arrow_runs_up_or_in_a_circle() -> None:
    layers, inner = _places("layer"), _places("package")
    assert [(a, b) for a, b in _arrows(1) if layers[a][0] > layers[b][0]] == []
    assert [a for a, _ in _arrows(1) if a in _below(a, _arrows(1))] == []
    inside = {(a, b) for a, b in _arrows(2) if a.split("/")[0] == b.split("/")[0]}
    assert len(inside) > 20
    assert [(a, b) for a, b in inside if inner[a] >= inner[b]] == []


@cache
def _arrows(depth: int) -> set[Arrow]:
    """Who imports whom: layers, or their packages; a file beside the packages is in none."""
    found: set[Arrow] = set()
    for name, tree in trees().items():
        home = PurePath(name).parent
        for target in _imported(tree):
            here, there = home.parts[:depth], target[:depth]
            if len(here) == len(there) == depth and here != there:
                found.add(("/".join(here), "/".join(there)))
    return found


def _imported(tree: ast.Module) -> list[tuple[str, ...]]:
    """Folders of the modules of ours that a file imports."""
    found = []
    for node in walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fairway."):
            path = (node.module or "").split(".")[1:]
            for alias in node.names:
                file = "/".join([*path, alias.name])
                is_file = f"{file}.py" in trees() or f"{file}/__init__.py" in trees()
                whole = [*path, alias.name] if is_file else path
                is_folder = f"{'/'.join(whole)}/__init__.py" in trees()
                found.append(tuple(whole if is_folder else whole[:-1]))
    return found


def _below(layer: str, arrows: set[Arrow]) -> set[str]:
    found: set[str] = set()
    left = [layer]
    while left:
        new = {b for a, b in arrows if a == left[-1]} - found
        left.pop()
        found |= new
        left += new
    return found


def _drawn(kind: str) -> set[str]:
    return set(re.findall(rf'data-{kind}="([^"]+)"', DRAWING.read_text("utf-8")))


def _places(kind: str) -> dict[str, tuple[float, float]]:
    """From the top down, and then from the left."""
    text = DRAWING.read_text("utf-8")
    found = re.findall(rf'data-{kind}="([^"]+)" x="([\d.]+)" y="([\d.]+)"', text)
    return {name: (float(y), float(x)) for name, x, y in found}
