"""All is wired at birth: nobody sets an attribute of another object, nobody waits for a hook.

What a service needs of others it takes when it is made, so a forgotten connection is a TypeError
and "go to definition" finds who is called. Lab, bench, rig and simulator are no part of a server or
worker.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import pytest
from tests.laws.source import trees, walk

ASIDE = ("lab/", "bench/", "rig/", "simulate/")
ANY = frozenset({"*"})

#: Whose fields may be written from outside their class: file or package → the names they go by.
#: Only what is data; a new name here needs a reason why the object has no verb for it.
DATA = {
    # nodes of an algorithm, which its own package links and counts
    "core/backlog/": ANY,
    "core/fair_share/": ANY,
    # the dispatcher's working memory, which only the owner and its parts change (test_one_owner.py)
    "services/dispatch/": {"lease", "session"},
    "services/sessions/": {"lease", "session"},
    "core/pool_classifier.py": {"record", "self.record_of(type_id, pool)"},
    "core/failure/sliding_window.py": {"last"},
    "core/insight/activity.py": {"cell", "cell.pool", "tally"},
    # records that their own module makes, keeps and throws away
    "api/http/gate.py": {"connection"},
    "api/http/protocol.py": {"self.cycle"},
    "sdk/client/handle.py": {"patience"},
    "sdk/run.py": {"ctx"},
    "sdk/testing/memory.py": {"record"},
    "services/backpressure/owner_slots.py": {"found"},
    "services/maintenance/partition_retirement.py": {"walk"},
    "services/object_storage/upload_accounts.py": {"account"},
    "services/scheduling/promoter.py": {"progress"},
    "services/sessions/held_calls.py": {"call", "line"},
    "store/connections/connection_cache.py": {"use"},
    "store/connections/query_slots.py": {"line"},
    "worker/exchange/lease_ledger.py": {"part", "report", "said"},
    "worker/runners/isolated.py": {"run", "self._runs[job]"},
    # messages that are filled in before they are sent, or put right once they are read
    "api/operators/pauses.py": {"wanted"},
    "api/workers/reports.py": {"one"},
    "cli/processes/up_server.py": {"keys"},
    "worker/exchange/reporting.py": {"request"},
    "worker/exchange/conversation.py": {"reply", "request"},
    "worker/pipe/message_checks.py": {"message"},
    "worker/pipe/run_messages.py": {"ended"},
    "worker/transfers.py": {"answer"},
    # errors on their way to somebody
    "cli/terminal/flag_words.py": {"error"},
    "sdk/client/coalescer.py": {"own"},
    "sdk/handler/stacks.py": {"frame", "one"},
    "services/backpressure/body_memory.py": {"error"},
    "services/submit/submission.py": {"answer"},
    "wire/problems.py": {"error"},
    # objects of others, which offer no other way
    "api/app.py": {"self.router", "self.state"},
    "api/docs/schemas.py": {"twin"},
    "api/http/lean_protocol.py": {"answering", "cycle", "self.server_state"},
    "runtime/lasting_output.py": {"sys"},
    "runtime/log_lines.py": {"logging", "sys", "threading", "warnings"},
}


def test_nobody_sets_an_attribute_of_another_object() -> None:
    found = [
        f"{name}:{line} {owner}.{attribute}"
        for name, line, owner, attribute in _foreign_writes()
        if not _is_data(name, owner)
    ]
    assert found == []


def test_what_counts_as_data_is_there() -> None:
    """An exception that nobody needs any more would hide the next one of its name."""
    written = {(name, owner) for name, _, owner, _ in _foreign_writes()}
    listed = {(place, owner) for place, owners in DATA.items() for owner in owners}
    unused = {
        (place, owner)
        for place, owner in listed
        if not any(name.startswith(place) and owner in ("*", other) for name, other in written)
    }
    assert unused == set()


def test_nobody_waits_for_a_hook() -> None:
    """A public attribute that is called is one to be set later, and silent until then."""
    hooks = [
        f"{name}:{node.lineno} {ast.unparse(node.target)}"
        for name, node in _nodes()
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Attribute)
        and not node.target.attr.startswith("_")
        and ast.unparse(node.annotation).startswith("Callable")
    ]
    assert hooks == []


def test_a_service_is_whole_when_it_is_made() -> None:
    """Every attribute is there from its constructor on, or from what that calls."""
    services = {name: tree for name, tree in trees().items() if name.startswith("services/")}
    assert list(_late_attributes(services)) == []


def test_nobody_is_given_a_function_after_birth() -> None:
    """Neither to keep nor to wait for: who needs one takes it when it is made."""
    ours = {name: tree for name, tree in trees().items() if not name.startswith(ASIDE)}
    assert list(_late_functions(ours)) == []


@pytest.mark.parametrize(
    "late",
    [
        "def bind(self, body: Callable[[], None]): self._body = body",
        "def bind(self, body: Hook | None): self._body = body",
        "def __init__(self): self._on_end: Hook | None = None",
    ],
)
def test_a_function_that_comes_late_is_seen(late: str) -> None:
    source = f"Hook: TypeAlias = Callable[[], None]\nclass A:\n    {late}"
    assert len([*_late_functions({"services/a.py": ast.parse(source)})]) == 1


def test_an_attribute_that_comes_late_is_seen() -> None:
    made = "class A:\n    def __init__(self): self._join()\n    def _join(self): self.a = 1\n"
    late = f"{made}    def start(self): self.a, self.b = 2, 3"
    assert [*_late_attributes({"services/a.py": ast.parse(late)})] == ["services/a.py A.b"]


def test_a_store_that_is_away_is_told_in_one_place() -> None:
    """`told_if_away` is the one translation; who catches such an error has another answer to it."""
    translating = [
        f"{name}:{node.lineno}"
        for name, node in _nodes()
        if isinstance(node, ast.ExceptHandler)
        and node.type is not None
        and "DISCONNECTED" in ast.unparse(node.type)
        and any(ast.unparse(step).startswith("raise Unavailable()") for step in node.body)
    ]
    assert translating == []


def _is_data(name: str, owner: str) -> bool:
    return any(
        name.startswith(place) and (owners is ANY or owner in owners)
        for place, owners in DATA.items()
    )


def _nodes() -> Iterator[tuple[str, ast.AST]]:
    for name, tree in trees().items():
        if not name.startswith(ASIDE):
            for node in walk(tree):
                yield name, node


def _foreign_writes() -> Iterator[tuple[str, int, str, str]]:
    """File, line, whose attribute, and which; also those that are set or deleted by name."""
    for name, node in _nodes():
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            owner, attribute = ast.unparse(node.value), node.attr
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("setattr", "delattr"):
            owner, attribute = map(ast.unparse, node.args[:2])
        else:
            continue
        if owner not in ("self", "cls"):
            yield name, node.lineno, owner, attribute


Function = ast.FunctionDef | ast.AsyncFunctionDef


class _Class(NamedTuple):
    place: str  # file and name
    fields: set[str]  # of its body
    methods: dict[str, Function]
    making: set[str]  # the constructor, and methods that it calls


def _classes(sources: Mapping[str, ast.Module]) -> Iterator[_Class]:
    for name, tree in sources.items():
        for node in walk(tree):
            if isinstance(node, ast.ClassDef):
                methods = {one.name: one for one in node.body if isinstance(one, Function)}
                fields = {target for one in node.body for target in _targets(one)}
                yield _Class(f"{name} {node.name}", fields, methods, _making(methods))


def _making(methods: Mapping[str, Function]) -> set[str]:
    found, left = set[str](), ["__init__", "__new__", "__post_init__"]
    while left:
        name = left.pop()
        if name in methods and name not in found:
            found.add(name)
            left += [
                ast.unparse(node.func).removeprefix("self.")
                for node in ast.walk(methods[name])
                if isinstance(node, ast.Call)
            ]
    return found


def _late_attributes(sources: Mapping[str, ast.Module]) -> Iterator[str]:
    for one in _classes(sources):
        made = one.fields.union(*(_set_by(one.methods[name]) for name in one.making))
        every = set[str]().union(*map(_set_by, one.methods.values()))
        yield from (f"{one.place}.{late}" for late in sorted(every - made))


def _set_by(method: Function) -> set[str]:
    """Attributes of `self`."""
    return {
        node.attr
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and ast.unparse(node.value) == "self"
    }


def _late_functions(sources: Mapping[str, ast.Module]) -> Iterator[str]:
    """Attributes that wait for a function, and those that keep one given to another method."""
    is_function = _named_as_functions(sources)
    for one in _classes(sources):
        for name, method in one.methods.items():
            arguments = [*method.args.args, *method.args.kwonlyargs]
            given = {it.arg for it in arguments if it.annotation and is_function(it.annotation)}
            for node in ast.walk(method):
                if isinstance(node, ast.AnnAssign):
                    is_late = is_function(node.annotation) and _is(node.value, "None")
                elif isinstance(node, ast.Assign):
                    is_late = name not in one.making and _is(node.value, *given)
                else:
                    continue
                if is_late and any(target.startswith("self.") for target in _targets(node)):
                    yield f"{one.place}.{name}: {ast.unparse(node)}"


def _named_as_functions(sources: Mapping[str, ast.Module]) -> Callable[[ast.expr], bool]:
    """Tells whether an annotation is of a function: says so, or is an alias of ours for one."""
    aliases = {
        target
        for tree in sources.values()
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and _is(node.annotation, "TypeAlias") and node.value
        for target in _targets(node)
        if ast.unparse(node.value).startswith("Callable")
    }
    words = re.compile(rf"^({'|'.join(['Callable', *aliases])})\b")
    return lambda annotation: bool(words.match(ast.unparse(annotation)))


def _targets(node: ast.stmt) -> list[str]:
    """What a statement sets, as it stands there."""
    if isinstance(node, ast.Assign):
        return [ast.unparse(target) for target in node.targets]
    return [ast.unparse(node.target)] if isinstance(node, ast.AnnAssign) else []


def _is(node: ast.expr | None, *words: str) -> bool:
    return node is not None and ast.unparse(node) in words
