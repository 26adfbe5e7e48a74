"""Whether a runner answers, counted in looks: it is quiet, deaf, or too busy to say so."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from fairway.worker.pipe.pings import DEAF_LOOKS, IDLE_CPU_MS, QUIET_LOOKS, Pings, answer_pings


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    yield ours, theirs
    ours.close()
    theirs.close()


def test_one_that_never_answers_is_quiet_and_then_deaf(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    pings = Pings(ends[0])
    pings.look(0)  # asks
    told = []
    for _ in range(DEAF_LOOKS):
        pings.look(0)
        told.append((pings.is_quiet, pings.is_deaf))
    assert [quiet for quiet, _ in told].index(True) == QUIET_LOOKS - 1
    assert [deaf for _, deaf in told].index(True) == DEAF_LOOKS - 1


def test_one_that_works_without_an_answer_is_quiet_and_never_deaf(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    pings = Pings(ends[0])
    for look in range(3 * DEAF_LOOKS):
        pings.look(look * (IDLE_CPU_MS + 1))
    assert (pings.is_quiet, pings.is_deaf) == (True, False)


def test_an_answer_makes_up_for_all_silence(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    pings = Pings(ours)
    for _ in range(DEAF_LOOKS + 1):
        pings.look(0)
    assert pings.is_deaf
    theirs.sendall(theirs.recv(16))
    pings.look(0)
    assert (pings.is_quiet, pings.is_deaf) == (False, False)
    assert theirs.recv(16), "it is asked anew"


def test_a_runner_answers_from_a_thread_of_its_own_until_the_keeper_is_gone(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = ends
    answer_pings(theirs)
    (thread,) = [one for one in threading.enumerate() if one.name == "fairway-pings"]
    ours.settimeout(10)
    for _ in range(3):
        ours.sendall(b".")
        assert ours.recv(16) == b"."
    ours.close()
    thread.join(10)
    assert not thread.is_alive()


def test_a_dead_end_is_no_answer(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    pings = Pings(ours)
    theirs.close()
    for _ in range(QUIET_LOOKS + 1):
        pings.look(0)
    assert not pings.is_deaf, "its end is found elsewhere"
    pings.close()
    assert ours.fileno() == -1
