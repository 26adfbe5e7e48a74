"""Tenants, pools, job types, shards, terms and epochs are numbers that travel side by side.

Each has a type of its own (`core/ids.py`), so that mypy refuses two that were swapped. This law
keeps bare numbers from coming back where those types are used.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.laws.source import trees, walk

LAYERS = ("core/", "services/", "store/")
KINDS = ("tenant", "pool", "shard", "term", "epoch")
ONE = {*KINDS, *(f"{kind}_id" for kind in KINDS), "type_id", "job_type"}
MANY = {f"{kind}s" for kind in KINDS}

BARE = re.compile(r"(Annotated\[)?int\b")
KEYED_BY_BARE = re.compile(r"\w+\[int\b")


def declared(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Every parameter, field and variable that says its type: line, name, type."""
    for node in walk(tree):
        if isinstance(node, ast.arg) and node.annotation is not None:
            yield node.lineno, node.arg, ast.unparse(node.annotation)
        elif isinstance(node, ast.AnnAssign):
            name = ast.unparse(node.target).rpartition(".")[2]
            yield node.lineno, name, ast.unparse(node.annotation)


def is_bare(name: str, type_: str) -> bool:
    word = name.lstrip("_")
    return bool(
        (word in ONE and BARE.match(type_)) or (word in MANY and KEYED_BY_BARE.match(type_))
    )


def test_a_number_says_what_it_counts() -> None:
    bare = [
        f"{module}:{line} {name}: {type_}"
        for module, tree in trees().items()
        if module.startswith(LAYERS)
        for line, name, type_ in declared(tree)
        if is_bare(name, type_)
    ]
    assert bare == []
