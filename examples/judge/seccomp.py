"""A seccomp filter: system calls that no contest entry needs and that attacks begin with.

Classic BPF, put together by hand: two machine types, one list. What is refused answers EPERM, so a
program that only tries hears "no" and goes on.
"""

from __future__ import annotations

import os
import platform
import struct

LOAD, JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050001  # the last: errno 1, EPERM
NUMBER_AT, MACHINE_AT = 0, 4
X32_CALLS = 0x40000000

#: name → (x86_64, aarch64)
REFUSED = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "unshare": (272, 97), "setns": (308, 268), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "keyctl": (250, 219),
    "add_key": (248, 217), "request_key": (249, 218), "kexec_load": (246, 104),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsmount": (432, 432), "pidfd_getfd": (438, 438),
}  # fmt: skip
MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}


def filter_program(machine: str = platform.machine()) -> bytes | None:
    """The filter for this machine; None where the numbers are not known."""
    if machine not in MACHINES:
        return None
    audit_number, column = MACHINES[machine]
    program = [
        (LOAD, 0, 0, MACHINE_AT),
        (JUMP_IF_EQUAL, 1, 0, audit_number),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER_AT),
        (JUMP_IF_AT_LEAST, 0, 1, X32_CALLS),
        (RETURN, 0, 0, REFUSE),
    ]
    for numbers in REFUSED.values():
        program += [(JUMP_IF_EQUAL, 0, 1, numbers[column]), (RETURN, 0, 0, REFUSE)]
    program.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in program)


def as_descriptor(program: bytes) -> int:
    """An open file with the filter, at its beginning; whoever asks closes it."""
    descriptor = os.memfd_create("filter")
    os.write(descriptor, program)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
