"""`fairway tenant`, tiers, limits and pauses, as an operator types them."""

from __future__ import annotations

from tests.cli.program import Run, said, sentence


def test_a_tenant_is_added_shown_and_changed(run: Run) -> None:
    added = said(run("tenants", "add", "umbrella", "tier=pro", "weight=50", "reserved.long=2"))
    assert added["api_key"].startswith("fw_tenant_")
    assert (added["tier"], added["weight"], added["reserved"]) == ("pro", 50, {"long": 2})
    changed = said(run("tenants", "set", "umbrella", "weight=", "cap=3", "reserved.long=0"))
    assert (changed["weight"], changed["cap"], changed["reserved"]) == (100, 3, {"long": 0})
    assert said(run("tenants", "show", "umbrella")) == changed


def test_tiers_and_limits_are_shown(run: Run) -> None:
    table = run("tiers")
    assert (table.status, table.err) == (0, "")
    (free,) = [line.split() for line in table.out.splitlines() if line.startswith("free")]
    assert free == ["free", "1", "0", "–", "10", "100", "10000000"]
    limits = said(run("limits"))
    assert (limits["tier"], limits["rate_per_second"], limits["burst"]) == ("standard", 100, 1000)


def test_a_pause_and_its_end(run: Run, acme: tuple[str, str], job: str) -> None:
    what = [f"tenant={acme[0]}", "type=cli.work"]
    assert run("pause", *what).out == f"Paused: {' '.join(what)}\n"
    assert run("jobs", "why", job).out.startswith("queued: It is paused,")
    assert run("resume", *what).out == f"Runs again: {' '.join(what)}\n"
    assert "This was not paused." in sentence(run("resume", *what))
