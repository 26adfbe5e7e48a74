"""What processes of one server know of each other: who is dead for certain, and nobody else."""

from __future__ import annotations

import os
import subprocess
import sys

from fairway.core.ownership.consolidation import UNKNOWN_PER_MILLE
from fairway.core.server_processes import ProcessGroup, SiblingFiles
from fairway.services.ownership.process_siblings import KNOWN_US, ProcessSiblings

GROUP = ProcessGroup("3f9a1c20", 1, 0, ("http://a", "http://b"), (), SiblingFiles(0, 0, ()))


def test_a_process_is_dead_when_it_ended_and_not_while_it_stands_still() -> None:
    siblings = ProcessSiblings(GROUP, share_work=True)
    program = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE) as sibling:
        name = GROUP._replace(number=2).server_name(sibling.pid)
        assert siblings.dead([name, GROUP.server_name(os.getpid())]) == set()
        sibling.kill()
        sibling.wait()
        assert siblings.dead([name]) == {name}


def test_of_other_servers_nothing_is_known() -> None:
    """Their numbers are another machine's, or nobody's."""
    siblings = ProcessSiblings(GROUP, share_work=True)
    gone = 2**22 + 1  # no Linux has a process of that number
    assert siblings.dead([GROUP.server_name(gone)]) == {GROUP.server_name(gone)}
    others = [
        f"77777777-1.{gone}",
        f"{GROUP.name}.{gone}",
        f"{GROUP.name}-1",
        "0123456789abcdef",
        "",
    ]
    assert siblings.dead(others) == set()
    assert ProcessSiblings(None, share_work=True).dead([GROUP.server_name(gone)]) == set()


def test_of_one_that_has_just_come_to_own_shards_it_is_not_known_how_busy_it_will_be() -> None:
    siblings = ProcessSiblings(GROUP, share_work=True)
    began_us = 5_000_000
    assert siblings.busy_per_mille(began_us, is_owner=False) >= UNKNOWN_PER_MILLE
    assert siblings.busy_per_mille(began_us + KNOWN_US - 1, is_owner=True) >= UNKNOWN_PER_MILLE
    assert siblings.busy_per_mille(began_us + KNOWN_US, is_owner=True) < UNKNOWN_PER_MILLE


def test_a_server_shares_work_with_its_siblings_unless_it_is_told_not_to() -> None:
    assert ProcessSiblings(GROUP, share_work=True).shared_group == GROUP.name
    assert ProcessSiblings(GROUP, share_work=False).shared_group == ""
    assert ProcessSiblings(None, share_work=True).shared_group == ""
