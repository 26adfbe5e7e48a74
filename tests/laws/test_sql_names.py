"""Named statements: each used by its name, once, by the module whose name its file has."""

from __future__ import annotations

import ast
import re

import pytest
from tests.laws.source import QUERIES, functions, modules, trees, walk

from fairway.store.sql import load

FILES = sorted(path.name for path in QUERIES.glob("*.sql"))
every_file = pytest.mark.parametrize("file_name", FILES)


def names_used(module: str) -> list[str]:
    """The keys of `_SQL["…"]` in a module, in order; `_SQL[f"…_{table}"]` is as in the file."""
    keys = [
        node.slice
        for node in walk(trees()[module])
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == "_SQL"
    ]
    of_each = [ast.unparse(key)[2:-1] for key in keys if isinstance(key, ast.JoinedStr)]
    return of_each + [str(key.value) for key in keys if isinstance(key, ast.Constant)]


def names_written(file_name: str) -> list[str]:
    """Of its statements, as they stand in the file: one in braces is of many tables."""
    return re.findall(r"^-- name: (.+)$", (QUERIES / file_name).read_text("utf-8"), re.MULTILINE)


def module_of(file_name: str) -> str:
    """Whose statements these are: of the same name, in whichever package of the store."""
    end = f"/{file_name.removesuffix('.sql')}.py"
    (module,) = (name for name in trees() if name.startswith("store/") and name.endswith(end))
    return module


@every_file
def test_every_statement_is_used_once_and_every_name_exists(file_name: str) -> None:
    written = names_written(file_name)
    assert sorted(names_used(module_of(file_name))) == sorted(written)
    assert {one for one in written if "{" not in one} <= set(load(file_name))


@every_file
def test_a_file_belongs_to_the_module_of_its_name(file_name: str) -> None:
    users = [name for name, text in modules().items() if f'load("{file_name}")' in text]
    assert users == [module_of(file_name)]


@every_file
def test_every_parameter_is_given_by_its_name(file_name: str) -> None:
    """A call `…(connection, _SQL["name"], a=…, b=…)` gives exactly what the statement asks for."""
    statements = load(file_name)
    for function in functions(trees()[module_of(file_name)]):
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            name = _statement_of(call)
            if name is not None and all(keyword.arg for keyword in call.keywords):
                given = {keyword.arg for keyword in call.keywords}
                assert given == set(statements[name].parameters), name


def _statement_of(call: ast.Call) -> str | None:
    for argument in call.args:
        if ast.unparse(argument).startswith("_SQL["):
            return str(ast.literal_eval(ast.unparse(argument)[len("_SQL[") : -1]))
    return None


def test_sql_lives_in_the_store_alone() -> None:
    """The words of SQL in capitals, at the head of a string, are found nowhere else.

    Except where another program's database is what is measured: a bench, the lab's naive worker;
    and where a tenant's own connection is spoken on.
    """
    head = re.compile(r"^\s*(SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM|CREATE TABLE)\b")
    for name, tree in trees().items():
        if not name.startswith(("store/", "bench/", "lab/naive", "sdk/client/sql")):
            for node in walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    assert not head.match(node.value), f"{name}: {node.value[:60]}"


#: Tables that every server reads whole, or that a leader asks about all shards.
OF_NO_SHARD = (
    "leadership",
    "tenants",
    "tenant_states",
    "tiers",
    "log",
    "restraints",
    "pools",
    "job_types",
    "type_names",
    "audit",
    "autoscale",
    "shards",
    "sql_logins",
    "sign_ins",
    # By tenant, or of the books: no job's row is written.
    "usage",
    "statements",
    "prices",
    "spend_caps",
    # What servers counted and saw.
    "minutes",
    "sights",
    "alarm_baselines",
    "alarm_history",
    "marks",
    "server_list",
    # From one shard to another, by tenant.
    "tenant_moves",
    # Homes and the directory: known to all servers of a region.
    "regions",
    # Of a whole database, before anybody uses it.
    "restored",
)


@every_file
def test_hot_statements_bind_their_shard(file_name: str) -> None:
    """One statement, one shard: what touches a hot table names the shard it is about."""
    if file_name.removesuffix(".sql") in OF_NO_SHARD:
        return
    for name, statement in load(file_name).items():
        assert {"shard", "shards", "owned", "key_shards"} & set(statement.parameters), name
        assert not re.search(r"\b(clock_timestamp|random|gen_random_uuid)\(", statement.text), name
