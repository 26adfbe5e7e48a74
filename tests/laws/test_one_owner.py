"""One owner: the dispatcher's state is its own; others ask it and tell it by its verbs.

Whoever needs something new of it gives it a verb. Tests of ours may look inside.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from tests.laws.source import functions, trees, walk

DISPATCHER = "services/dispatch/dispatcher.py"
SESSIONS = "services/sessions/sessions.py"
#: Its parts, wired in its constructor; they are what it is made of.
PARTS = {
    f"services/dispatch/{name}.py"
    for name in (
        "dispatcher", "granting", "lease_table", "letting_go", "owned_shards", "pool_shares",
        "presence", "pulled_leases", "restored_leases", "run_ends", "wait_facts", "window_feed",
    )
}  # fmt: skip
#: The registry's table, which it was given like others.
NOT_ITS_OWN = {"pools"}
#: Who may change a session or a lease: the parts, and the package where both live.
MEMORY = "services/sessions/"
CHANGING = {
    "add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "insert",
    "intersection_update", "pop", "popitem", "popleft", "remove", "setdefault", "update",
}  # fmt: skip
#: Fields of others that are called the same.
NAMESAKES = {
    ("api/operators/pauses.py", "tenant"),  # of a pause, as it was asked for
}


def test_nobody_reaches_into_the_dispatcher() -> None:
    verbs = {one.name for one in _class_named("Dispatcher").body if isinstance(one, _FUNCTIONS)}
    reaches = [
        f"{name}:{node.lineno} {ast.unparse(node)}"
        for name, node in _attributes()
        if name not in PARTS
        and _last_name(node.value) in ("dispatcher", "_dispatcher")
        and (node.attr not in verbs - {"__init__"} | NOT_ITS_OWN or node.attr.startswith("_"))
    ]
    assert reaches == []


def test_a_dispatcher_is_called_one() -> None:
    """The law above knows it by its name."""
    others = [
        f"{name}: {function.name}({one.arg})"
        for name, tree in trees().items()
        for function in functions(tree)
        for one in (*function.args.args, *function.args.kwonlyargs)
        if one.annotation is not None
        and ast.unparse(one.annotation) == "Dispatcher"
        and one.arg != "dispatcher"
    ]
    assert others == []


def test_nobody_else_changes_a_session_or_a_lease() -> None:
    fields = _fields()
    assert {"outbox", "recording", "draining", "written", "cancelling", "moved_to"} <= fields
    changes = [
        f"{name}:{node.lineno} {ast.unparse(node)}"
        for name, node in _changed()
        if node.attr in fields
        and name not in PARTS
        and not name.startswith(MEMORY)
        and name.startswith(("services/", "api/"))
        and _last_name(node.value) not in ("self", "cls")
        and (name, node.attr) not in NAMESAKES
    ]
    assert changes == []


def test_the_edge_asks_in_one_place_whose_a_job_is() -> None:
    asking = {
        name
        for name, node in _attributes()
        if name.startswith("api/")
        and _last_name(node.value) == "dispatcher"
        and node.attr in ("owns", "owns_any", "is_open", "term_of", "terms")
    }
    assert asking == {"api/relay.py"}


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def _fields() -> set[str]:
    """All attributes of `Session`, and all fields of `Lease`."""
    lease = {
        one.target.id
        for one in _class_named("Lease").body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }
    session = {
        node.attr
        for node in ast.walk(_class_named("Session"))
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and _last_name(node.value) == "self"
    }
    return lease | session


def _class_named(name: str) -> ast.ClassDef:
    home = trees()[DISPATCHER if name == "Dispatcher" else SESSIONS]
    (found,) = (one for one in home.body if isinstance(one, ast.ClassDef) and one.name == name)
    return found


def _attributes() -> Iterator[tuple[str, ast.Attribute]]:
    for name, tree in trees().items():
        for node in walk(tree):
            if isinstance(node, ast.Attribute):
                yield name, node


def _changed() -> Iterator[tuple[str, ast.Attribute]]:
    """Attributes that are set, or of which an item is, or that a method changes in place."""
    for name, tree in trees().items():
        for node in walk(tree):
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                yield name, node
            elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                if isinstance(node.value, ast.Attribute):
                    yield name, node.value
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in CHANGING
                and isinstance(node.func.value, ast.Attribute)
            ):
                yield name, node.func.value


def _last_name(node: ast.expr) -> str:
    """`dispatcher` of `self.platform.dispatcher` and of `dispatcher`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
