"""The sources of the package, as text and as trees, for the laws that look at them."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src/fairway"
QUERIES = PACKAGE / "store/queries"


@cache
def modules() -> dict[str, str]:
    """Every module of the package by its path inside it."""
    return {
        str(path.relative_to(PACKAGE)): path.read_text("utf-8")
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@cache
def trees() -> dict[str, ast.Module]:
    gc.disable()  # millions of nodes, which all stay: to look for rubbish among them takes longest
    try:
        return {name: ast.parse(text) for name, text in modules().items()}
    finally:
        gc.freeze()
        gc.enable()


@cache
def walk(tree: ast.Module) -> list[ast.AST]:
    """Every node of a module. Each law looks through them all, and to find them takes longest."""
    return list(ast.walk(tree))


def functions(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return [node for node in walk(tree) if isinstance(node, kinds)]
