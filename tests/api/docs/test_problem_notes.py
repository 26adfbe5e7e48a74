"""Every problem has its note and its page, and no note is stale."""

from __future__ import annotations

import httpx2
from tests.api.house import problem

from fairway.api.docs.problem_notes import PROBLEM_NOTES
from fairway.wire.problems import CODES


def test_every_code_has_a_note_and_no_note_is_stale() -> None:
    assert set(PROBLEM_NOTES) == set(CODES)


async def test_every_problem_has_a_page(nobody: httpx2.AsyncClient) -> None:
    for code, (status, title) in CODES.items():
        reply = await nobody.get(f"/problems/{code.lower().replace('_', '-')}")
        assert reply.status_code == 200
        for word in (code, str(status), title.replace("'", "&#x27;")):
            assert word in reply.text
    problem(await nobody.get("/problems/%3Cscript%3E"), 404, "NOT_FOUND")
