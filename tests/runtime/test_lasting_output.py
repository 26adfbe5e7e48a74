"""Output that nobody takes stops nobody; what is taken arrives as it was written."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from fairway.runtime.lasting_output import LastingFile

SPEAKER = """
import subprocess, sys
from fairway.runtime.lasting_output import outlive_readers
outlive_readers()
input()
print("x" * 100_000)
sys.stderr.write("lost\\n")
child = "import os; os.write(1, b'of a child')"
sys.exit(7 + subprocess.run([sys.executable, "-c", child]).returncode)
"""


def test_a_reader_that_is_gone_stops_nobody() -> None:
    reader, writer = os.pipe()
    file = LastingFile(writer, "w")
    assert file.write(b"heard") == 5
    assert os.read(reader, 9) == b"heard"
    os.close(reader)
    assert file.write(b"lost") == 4
    assert os.fstat(writer).st_rdev == os.stat(os.devnull).st_rdev, "it leads nowhere from now on"
    file.close()


def test_a_full_disk_costs_the_lines_and_no_more() -> None:
    file = LastingFile(os.open("/dev/full", os.O_WRONLY), "w")
    assert file.write(b"lost") == 4
    assert os.fstat(file.fileno()).st_rdev == os.stat("/dev/full").st_rdev, "it may have room again"
    file.close()


def test_a_program_goes_on_without_its_reader_and_so_do_its_children() -> None:
    speaker = subprocess.Popen(
        [sys.executable, "-c", SPEAKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert speaker.stdout is not None
    speaker.stdout.close()
    speaker.communicate(b"\n", 60)
    assert speaker.returncode == 7


def test_what_is_taken_arrives_also_when_the_other_stream_is_closed(tmp_path: Path) -> None:
    speaker = tmp_path / "speaker.py"
    speaker.write_text(
        "import sys\nfrom fairway.runtime.lasting_output import outlive_readers\n"
        "outlive_readers()\nsys.stderr.write('lost')\nprint('heard', open(__file__).fileno() > 2)\n"
    )
    line = f"exec {sys.executable} {speaker} 2>&-"
    ran = subprocess.run(["/bin/sh", "-c", line], capture_output=True, timeout=60, check=True)
    assert ran.stdout == b"heard True\n"


UNREAD = """
import sys
from fairway.runtime.lasting_output import outlive_readers
outlive_readers()
for _ in range(3):
    print("x" * 1_000_000, flush=True)
sys.stderr.write("went on\\n")
"""


def test_a_reader_that_reads_no_more_is_not_waited_for() -> None:
    """As `fairway up | less`: the pipe is full, and open."""
    speaker = subprocess.Popen(
        [sys.executable, "-c", UNREAD], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert speaker.stderr is not None
    assert speaker.stdout is not None
    try:
        assert speaker.wait(60) == 0
        assert speaker.stderr.read() == b"went on\n"
        assert 0 < len(speaker.stdout.read()) < 3_000_000, "what had room is there"
    finally:
        speaker.kill()
        speaker.stdout.close()
        speaker.stderr.close()


def test_who_reads_again_hears_again() -> None:
    reader, writer = os.pipe()
    file = LastingFile(writer, "w")
    for _ in range(2):
        assert file.write(b"x" * 200_000) == 200_000
    taken = 0
    while taken < 65_536:
        taken += len(os.read(reader, 65_536))
    assert file.write(b"heard") == 5
    assert os.read(reader, 9) == b"heard"
    os.close(reader)
    file.close()


LONG_LINES = """
import os, sys
from fairway.runtime.lasting_output import outlive_readers
outlive_readers()
os.read(0, 1)
for length in (20_000, 50, 40_000) * 30:
    sys.stderr.write(sys.argv[1] * length + "\\n")
"""


def test_long_lines_of_several_processes_stay_whole() -> None:
    reader, writer = os.pipe()
    words = [sys.executable, "-c", LONG_LINES]
    waiting, told = os.pipe()
    speakers = [
        subprocess.Popen([*words, letter], stdin=waiting, stderr=writer) for letter in "abc"
    ]
    os.close(writer)
    time.sleep(0.3)  # so that they speak at one time
    os.close(told)
    with os.fdopen(reader) as heard:
        lines = heard.read().splitlines()
    os.close(waiting)
    assert [speaker.wait(60) for speaker in speakers] == [0, 0, 0]
    assert {len(set(line)) for line in lines} == {1}, "a line of one is cut by another's"
    assert sorted(map(len, lines)) == [50] * 90 + [20_000] * 90 + [40_000] * 90


def test_one_that_was_stopped_in_its_line_is_waited_for_once() -> None:
    reader, writer = os.pipe()
    words = "import fcntl, sys; fcntl.lockf(1, fcntl.LOCK_EX); sys.stderr.write('!'); input()"
    holder = subprocess.Popen(
        [sys.executable, "-c", words], stdin=subprocess.PIPE, stdout=writer, stderr=subprocess.PIPE
    )
    assert holder.stdin is not None
    assert holder.stderr is not None
    try:
        assert holder.stderr.read(1) == b"!"
        file, began = LastingFile(writer, "w"), time.monotonic()
        for _ in range(1000):  # 0.3 s each would be 5 min
            assert file.write(b"heard") == 5
        assert time.monotonic() - began < 10
        assert os.read(reader, 9000) == b"heard" * 1000
        file.close()
    finally:
        holder.communicate(b"\n", 60)
        os.close(reader)
