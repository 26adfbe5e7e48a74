"""One shape for a thing: the end of a run, and what a job type declares, are not copied about.

Each further shape is a place to forget a field in, and work for every job. A new one needs a reason
why none of these will do.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.laws.source import trees, walk

#: What a run meant; that under a lease, on its way; that with what was decided, to be recorded.
ENDS = {
    "core/run/outcome.py:Outcome",
    "wire/exchange.py:Report",
    "services/sessions/calls.py:Report",  # a protocol: the wire's, seen without knowing the wire
    "services/sessions/sessions.py:End",
    "store/outcomes.py:Success",  # columns of its row
    "core/job.py:JobRecord",  # the row, read: what is told of a job
}
#: An option of job types that has no meaning to those who carry it.
OPTION = "warm_key"
#: Where it is declared, said, kept; and where somebody acts on it.
HOMES = {
    "sdk/job.py",
    "wire/job_type.py",
    "core/job_type.py",
    "services/registry/job_types.py",
}


def test_the_end_of_a_run_has_no_further_shape() -> None:
    found = {
        f"{name}:{node.name}"
        for name, tree in trees().items()
        for node in walk(tree)
        if isinstance(node, ast.ClassDef) and {"ran_us", "result"} <= set(_fields(node))
    }
    assert found == ENDS


def test_an_option_of_a_job_type_is_named_only_where_it_means_something() -> None:
    found = {
        name
        for name, tree in trees().items()
        if any(_name_of(node) == OPTION for node in walk(tree))
    }
    assert found == HOMES


def _fields(node: ast.ClassDef) -> Iterator[str]:
    for step in node.body:
        if isinstance(step, ast.AnnAssign) and isinstance(step.target, ast.Name):
            yield step.target.id


def _name_of(node: ast.AST) -> str | None:
    match node:
        case ast.Attribute(attr=name) | ast.keyword(arg=name) | ast.Name(id=name):
            return name
    return None
