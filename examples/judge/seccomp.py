"""A seccomp filter: system calls that no contest entry needs and that attacks begin with.

Classic BPF, put together by hand: two machine types, one list. What is refused answers EPERM, so a
program that only tries hears "no" and goes on.
"""

from __future__ import annotations

import platform
import socket
import struct

from examples.judge.trouble import SandboxUnavailable

Step = tuple[int, int, int, int]

LOAD, JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, JUMP_IF_ANY, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL = 0x7FFF0000, 0x80000000
REFUSE, UNKNOWN = 0x00050001, 0x00050026  # errno 1, EPERM; errno 38, ENOSYS
NUMBER_AT, MACHINE_AT, ARGUMENTS_AT = 0, 4, 16
X32_CALLS = 0x40000000
NEW_NAMESPACES = 0x7E020000  # every flag of clone that makes one
SIGCHLD = 17

#: name → (x86_64, aarch64)
REFUSED = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "kcmp": (312, 272), "pidfd_getfd": (438, 438),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "open_by_handle_at": (304, 265), "quotactl": (179, 60),
    "fanotify_init": (300, 262), "unshare": (272, 97), "setns": (308, 268),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "acct": (163, 89),
    "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142), "syslog": (103, 116),
    "sethostname": (170, 161), "setdomainname": (171, 162), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    # Whose turn it is: the warden has the account of its program, which could put it last and
    # take memory meanwhile. No runtime here asks for any of them; "own" cannot be told by a number.
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118), "sched_setattr": (314, 274), "setpriority": (141, 140),
    "ioprio_set": (251, 30), "migrate_pages": (256, 238), "move_pages": (279, 239),
    # Memory that no limit on address space counts.
    "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190),
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
}  # fmt: skip
CLONE, CLONE3, SIGACTION = (56, 220), (435, 435), (13, 134)
PRLIMIT, SOCKET, PRCTL = (302, 261), (41, 198), (157, 167)
SHARE_A_CORE = 62
#: Not among them: vsock, which leads out of a virtual machine whatever the network namespace.
FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)
MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}


def filter_program(machine: str = platform.machine()) -> bytes:
    if machine not in MACHINES:
        raise SandboxUnavailable(f"the system calls of {machine} are not known here")
    audit_number, column = MACHINES[machine]
    program: list[Step] = [
        (LOAD, 0, 0, MACHINE_AT),
        (JUMP_IF_EQUAL, 1, 0, audit_number),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER_AT),
        (JUMP_IF_AT_LEAST, 0, 1, X32_CALLS),
        (RETURN, 0, 0, REFUSE),
    ]
    for numbers in REFUSED.values():
        program += _on(numbers[column], [(RETURN, 0, 0, REFUSE)])
    for numbers, steps in _looked_at():
        program += _on(numbers[column], steps)
    program.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in program)


def _looked_at() -> list[tuple[tuple[int, int], list[Step]]]:
    """Calls that depend on what they are called with."""
    yes, no = (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)
    families = [(JUMP_IF_EQUAL, len(FAMILIES) - n, 0, one) for n, one in enumerate(FAMILIES)]
    return [
        # A filter cannot look behind the pointer of clone3; libraries then use clone.
        (CLONE3, [(RETURN, 0, 0, UNKNOWN)]),
        (CLONE, [_argument(0), (JUMP_IF_ANY, 0, 1, NEW_NAMESPACES), no, yes]),
        # Who ignores SIGCHLD has children whose processor time nobody is told.
        (SIGACTION, [_argument(0), (JUMP_IF_EQUAL, 1, 0, SIGCHLD), yes,
                     _argument(1), (JUMP_IF_EQUAL, 1, 0, 0), no,
                     _argument(1, high=True), (JUMP_IF_EQUAL, 1, 0, 0), no, yes]),
        # Its own limits, not those of the process that watches it.
        (PRLIMIT, [_argument(0), (JUMP_IF_EQUAL, 1, 0, 0), no, yes]),
        (PRCTL, [_argument(0), (JUMP_IF_EQUAL, 0, 1, SHARE_A_CORE), no, yes]),
        (SOCKET, [_argument(0), *families, no, yes]),
    ]  # fmt: skip


def _on(number: int, steps: list[Step]) -> list[Step]:
    """These steps for this call; they end with a return."""
    return [(JUMP_IF_EQUAL, 0, len(steps), number), *steps]


def _argument(place: int, *, high: bool = False) -> Step:
    """Half of an argument; both machine types keep the low half first."""
    return (LOAD, 0, 0, ARGUMENTS_AT + 8 * place + (4 if high else 0))
