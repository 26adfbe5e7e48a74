"""How PostgreSQL carries out a named statement: its generic plan, run and measured.

The statement is prepared as the hot path prepares it, on a connection with the hot path's
settings; what it changes is rolled back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import asyncpg

from fairway.store.connections.database import Connection
from fairway.store.sql import Statement


class Plan:
    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root

    @classmethod
    async def of(cls, connection: Connection, statement: Statement, **values: Any) -> Plan:
        literals = ", ".join(literal(value) for value in statement.bind(**values))
        call = f"EXECUTE measured({literals})" if literals else "EXECUTE measured"
        transaction = connection.transaction()
        await transaction.start()
        try:
            await connection.execute(f"PREPARE measured AS {statement.text}")
            found = await connection.fetchval(
                f"EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, FORMAT JSON) {call}"
            )
        finally:
            await transaction.rollback()
            await connection.execute("DEALLOCATE ALL")
            await connection.reload_schema_state()
        return cls(json.loads(found)[0]["Plan"])

    @property
    def pages(self) -> int:
        """Pages looked at, in memory or on disk, as often as they were; needs BUFFERS."""
        return int(self.root["Shared Hit Blocks"] + self.root["Shared Read Blocks"])

    def shape(self, table: str) -> list[str]:
        """What it consists of, top down: nodes without a job table, and those of this one."""
        relations = ((node, str(node.get("Relation Name", ""))) for node in self.nodes())
        return [
            f"{node['Node Type']} {node.get('Index Name', '')}".strip()
            for node, relation in relations
            if relation == table or not relation.startswith("jobs_")
        ]

    def nodes(self) -> Iterator[dict[str, Any]]:
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += node.get("Plans", [])

    def run(self) -> Iterator[dict[str, Any]]:
        """The nodes that were carried out, not merely planned."""
        return (node for node in self.nodes() if node.get("Actual Loops"))

    def tables(self, prefix: str = "jobs") -> set[str]:
        """The tables that rows were looked for in."""
        return {
            node["Relation Name"]
            for node in self.run()
            if "Scan" in node["Node Type"] and str(node.get("Relation Name", "")).startswith(prefix)
        }

    def kinds(self) -> set[str]:
        """How tables were looked at: index scans, or worse."""
        return {node["Node Type"] for node in self.nodes() if "Relation Name" in node}

    def rows_touched(self) -> float:
        """Rows that came out of indexes of the job table, or were thrown away there."""
        touched = [
            node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0))
            for node in self.run()
            if "Scan" in node["Node Type"] and "Relation Name" in node
        ]
        return float(sum(touched))


class Prepared:
    """A session that planned its statements once, and keeps those plans while the table grows."""

    def __init__(self, connection: Connection, statements: Mapping[str, Statement]) -> None:
        self._connection = connection
        self._statements = statements

    @classmethod
    async def now(
        cls,
        connection: Connection,
        statements: Mapping[str, Statement],
        values: Mapping[str, Mapping[str, Any]],
    ) -> Prepared:
        session = cls(connection, statements)
        for name, statement in statements.items():
            await connection.execute(f"PREPARE {name} AS {statement.text}")
            await session._explain(name, values[name], "COSTS OFF")
        return session

    async def run(self, name: str, values: Mapping[str, Any], seconds_max: float) -> Plan | None:
        """Carry it out by the plan of then, and undo it; None when it takes too long."""
        transaction = self._connection.transaction()
        await transaction.start()
        try:
            await self._connection.execute(f"SET LOCAL statement_timeout = '{seconds_max}s'")
            return Plan(await self._explain(name, values, "ANALYZE, BUFFERS, COSTS OFF"))
        except asyncpg.QueryCanceledError:
            return None
        finally:
            await transaction.rollback()

    async def _explain(self, name: str, values: Mapping[str, Any], how: str) -> dict[str, Any]:
        literals = ", ".join(literal(value) for value in self._statements[name].bind(**values))
        found = await self._connection.fetchval(
            f"EXPLAIN ({how}, FORMAT JSON) EXECUTE {name}({literals})"
        )
        plan: dict[str, Any] = json.loads(found)[0]["Plan"]
        return plan


def literal(value: Any) -> str:
    """A value as SQL text; its type is what the statement says."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return "'{" + ",".join("NULL" if one is None else plain(one) for one in value) + "}'"
    return f"'{plain(value)}'"


def plain(value: Any) -> str:
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, timedelta):
        return f"{value.total_seconds()} seconds"
    if isinstance(value, datetime):
        return value.isoformat()
    return str(int(value)) if isinstance(value, int) else str(value)
