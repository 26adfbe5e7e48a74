"""`fairway tenant`, tiers, limits and pauses, as an operator types them."""

from __future__ import annotations

import secrets

from tests.cli.program import Run, said, sentence


def test_a_tenant_is_added_shown_and_changed(run: Run) -> None:
    added = said(
        run("tenants", "add", "umbrella", "tier=pro", "weight=50", "reserved.long=2", "--json")
    )
    assert added["api_key"].startswith("fw_tenant_")
    assert (added["tier"], added["weight"], added["reserved"]) == ("pro", 50, {"long": 2})
    changed = said(
        run("tenants", "set", "umbrella", "weight=", "cap=3", "reserved.long=0", "--json")
    )
    assert (changed["weight"], changed["cap"], changed["reserved"]) == (100, 3, {"long": 0})
    assert said(run("tenants", "show", "umbrella", "--json")) == changed
    wrong = sentence(run("tenants", "set", "umbrella", "wieght=3"))
    assert wrong.startswith("There is no field 'wieght'; there are tier, weight, cap,")


def test_a_tenant_is_suspended_deleted_and_restored(run: Run) -> None:
    name = f"cli-{secrets.token_hex(4)}"
    for act in ("suspend", "delete"):  # before anybody is asked
        assert sentence(run("tenants", act, name)) == f"There is no tenant {name!r}."
    run("tenants", "add", name)
    asked = sentence(run("tenants", "suspend", name, "--cancel-running"))
    assert f"This suspends {name}; what shared workers run of it is cancelled." in asked
    assert run("tenants", "suspend", name, "--reason", "No.", "-y").out == f"Suspended: {name}\n"
    again = run("tenants", "suspend", name, "--reason", "Yes.", "-y").out
    assert "its reason stays: No. (--replace-reason)" in again
    assert name in run("doctor").out
    limits = said(run("limits", "--tenant", name, "--json"))
    assert [one["reason"] for one in limits["held"]] == ["suspended"]
    found = run("tenants", "ls", "--search", name, "--state", "suspended").out.splitlines()
    assert [line.split()[:2] for line in found[-1:]] == [[name, "suspended"]]
    assert run("tenants", "resume", name).out == f"Active again: {name}\n"
    assert "ask with --suspend." in sentence(run("tenants", "delete", name, "-y"))
    assert run("tenants", "delete", name, "--suspend", "-y").out.startswith(f"Deleted: {name};")
    assert run("tenants", "restore", name).out.startswith(f"Restored, and suspended: {name};")


def test_tiers_and_limits_are_shown(run: Run) -> None:
    table = run("tiers")
    assert (table.status, table.err) == (0, "")
    (free,) = [line.split() for line in table.out.splitlines() if line.startswith("free")]
    assert free == ["free", "1", "0", "–", "10", "100", "10,000,000", "free"]
    limits = said(run("limits", "--json"))
    assert (limits["tier"], limits["rate_per_second"], limits["burst"]) == ("standard", 100, 1000)


def test_tenants_and_keys_are_listed(run: Run, acme: tuple[str, str]) -> None:
    assert acme[0] in [line.split()[0] for line in run("tenants", "ls").out.splitlines()]
    made = said(run("keys", "add", "--tenant", acme[0], "--worker", "--json"))
    listed = run("keys", "ls", "--tenant", acme[0]).out.splitlines()
    assert [line.split()[:3] for line in listed if made["id"] in line] == [
        [made["id"], "worker", acme[0]]
    ]
    asked = sentence(run("keys", "revoke", made["api_key"]))
    assert f"This revokes the worker key {made['id']} of {acme[0]}" in asked
    assert run("keys", "revoke", made["id"], "--yes").out == f"Revoked: {made['id']}\n"
    assert made["id"] not in run("keys", "ls", "--tenant", acme[0]).out
    assert "There is no such key" in sentence(run("keys", "revoke", made["id"], "--yes"))
    assert "is no key's id" in sentence(run("keys", "revoke", "nonsense", "--yes"))
    assert "Say for whom" in sentence(run("keys", "add"))


def test_a_pause_and_its_end(run: Run, acme: tuple[str, str], job: str) -> None:
    what = [f"tenant={acme[0]}", "type=cli.work"]
    assert run("pause", *what).out == f"Paused: {' '.join(what)}\n"
    why = run("jobs", "why", job).out
    assert why.startswith("queued: It is paused,")
    assert "`fairway pauses` says what is paused" in why
    assert "cli.work" in run("pauses").out
    assert "cli.work" in run("pauses", "--mine").out
    assert run("resume", *what).out == f"Runs again: {' '.join(what)}\n"
    assert "This was not paused." in sentence(run("resume", *what))


def test_a_pause_of_every_tenant_is_asked_for(run: Run, acme: tuple[str, str]) -> None:
    other = f"cli.other-{secrets.token_hex(4)}"  # a try that was cut short leaves its pause
    wrong = sentence(run("pause", f"typ={other}"))
    assert wrong == "There is no field 'typ'; there are tenant, type, pool."
    asked = sentence(run("pause", f"type={other}"))
    assert asked.startswith(f"This holds type={other} of every tenant.")
    done = run("pause", f"type={other}", "--yes").out
    paused, warning = done.splitlines()
    assert paused == f"Paused: tenant=(every one) type={other}"
    assert warning.startswith(f"No job type {other!r} is known now: look twice at its name.")
    assert run("resume", f"type={other}").status == 0
    mine = run("pause", f"type={other}", "--mine").out
    assert mine.startswith(f"Paused: tenant={acme[0]} type={other}\n")
    assert run("resume", f"type={other}", FAIRWAY_OPERATOR_KEY="").status == 0


def test_what_there_is_is_shown(run: Run) -> None:
    assert "short" in run("pools").out
    for words in (["types"], ["audit"], ["usage"], ["usage", "--since", "1h"], ["pauses"]):
        ended = run(*words)
        assert (ended.status, ended.err) == (0, ""), words
