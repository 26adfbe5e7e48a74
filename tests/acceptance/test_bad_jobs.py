"""Jobs that behave badly towards the process they run in."""

from __future__ import annotations

import pytest
from tests.acceptance.checker import DEAD, check_legality
from tests.acceptance.house import House

pytestmark = pytest.mark.usefixtures("spare_runners")


async def test_a_job_that_holds_the_interpreter_keeps_its_lease(house: House) -> None:
    """The lease is three seconds; the job lets nothing else in its process move for five."""
    await house.open(workers=2)
    job = await house.post("hog", "medium", seconds=5)
    verdict = await house.check([job])
    assert (verdict.lost_leases, verdict.runs) == (0, 1)


@pytest.mark.slow
async def test_a_poisonous_job_does_not_take_its_neighbours_with_it(
    house: House, figures: dict[str, str]
) -> None:
    """It ends the process that it shares with others, each time; it dies, they do not."""
    await house.open()
    neighbours = [await house.post("work", "medium", seconds=2) for _ in range(4)]
    neighbours += [await house.post("nap", "short", seconds=2) for _ in range(4)]
    for job in neighbours:
        await house.ledger.begins(job)
    poison = await house.post("poison.exit", "medium")
    view = await house.finished(poison, within_seconds=60)
    assert (view["state"], view["attempts"], view["deliveries"]) == ("dead", 0, 10), view
    await house.book.drained(60)
    rows = await house.book.rows()
    assert rows.pop(poison).state == DEAD
    assert {row.state for row in rows.values()} == {3}, "innocent jobs died with the poisonous one"
    assert {row.attempts for row in rows.values()} == {1}
    check_legality(await house.book.changes())
    figures["a poisonous job among eight"] = (
        f"neighbours lost {max(row.deliveries for row in rows.values()) - 1} leases each at most"
    )
