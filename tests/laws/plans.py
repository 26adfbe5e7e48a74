"""How PostgreSQL carries out a named statement: its generic plan, run and measured.

The statement is prepared as the hot path prepares it, on a connection with the hot path's
settings; what it changes is rolled back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from fairway.store.database import Connection
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
            found = await connection.fetchval(f"EXPLAIN (ANALYZE, COSTS OFF, FORMAT JSON) {call}")
        finally:
            await transaction.rollback()
            await connection.execute("DEALLOCATE ALL")
            await connection.reload_schema_state()
        return cls(json.loads(found)[0]["Plan"])

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
