"""Programs that look for a way out: through /proc, files, mounts, privileges, the network."""

from __future__ import annotations

from tests.examples.hostile import ADD, NUMBERS, PRELUDE, Hostile, calls, tries

ROOT_HAS = {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "proc", "dev", "tmp",
            "box"}  # fmt: skip
ETC_HAS = {"alternatives", "ld.so.cache", "java-17-openjdk", "java-21-openjdk"}
DEV_HAS = {"null", "zero", "full", "random", "urandom", "tty", "stdin", "stdout", "stderr", "fd",
           "core", "pts", "ptmx", "shm", "console"}  # fmt: skip

PROC = [
    Hostile("proc", "reads the environment of process 1", tries("open('/proc/1/environ').read()")),
    Hostile("proc", "writes into process 1", tries("open('/proc/1/mem', 'r+b', 0)"), is_quick=True),
    Hostile("proc", "lists the open files of process 1", tries("os.listdir('/proc/1/fd')")),
    Hostile("proc", "goes through the root of process 1", tries("os.listdir('/proc/1/root/')")),
    Hostile("proc", "goes to the folder of process 1", tries("os.chdir('/proc/1/cwd') or True")),
    Hostile("proc", "looks for other processes",
            tries("set(filter(str.isdigit, os.listdir('/proc'))) - {'1', str(os.getpid())}")),
    Hostile("proc", "looks for the worker's settings", tries(
        "[name for name in os.environ if 'FAIRWAY' in name or 'JUDGE' in name]")),
    Hostile("proc", "names a program for core dumps", tries(
        "open('/proc/sys/kernel/core_pattern', 'w')")),
    Hostile("proc", "pulls the emergency lever", tries("open('/proc/sysrq-trigger', 'w')")),
    Hostile("proc", "reads the kernel's memory", tries("open('/proc/kcore', 'rb').read(1)")),
    Hostile("proc", "hides from the out-of-memory killer", tries(
        "os.write(os.open('/proc/self/oom_score_adj', os.O_WRONLY), b'-1000')")),
    Hostile("proc", "allows itself user namespaces", tries(
        "os.write(os.open('/proc/sys/user/max_user_namespaces', os.O_WRONLY), b'100')")),
]  # fmt: skip

TRACING = [
    Hostile("tracing", "attaches to process 1", calls("ptrace", 16, 1, 0, 0)),
    Hostile("tracing", "attaches to its child", PRELUDE +
            "child = os.fork()\nif child == 0:\n    time.sleep(9)\n"
            "got = libc.ptrace(16, child, 0, 0)\nprint(42 if got == -1 else 'out')\n"),
    Hostile("tracing", "reads another's memory", calls("process_vm_readv", 1, 0, 0, 0, 0, 0)),
    Hostile("tracing", "writes another's memory", calls("process_vm_writev", 1, 0, 0, 0, 0, 0)),
    Hostile("tracing", "takes a descriptor", calls("pidfd_getfd", "os.pidfd_open(1)", 1, 0)),
    Hostile("tracing", "limits process 1", tries(
        "resource.prlimit(1, resource.RLIMIT_CPU, (1, 1)) or True"), is_quick=True),
]  # fmt: skip

TURNS = [
    Hostile("turns", "binds process 1 to one core", tries(
        "os.sched_setaffinity(1, {min(os.sched_getaffinity(0))}) or True"), is_quick=True),
    Hostile("turns", "puts process 1 last", tries(
        "os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)) or True"), is_quick=True),
    Hostile("turns", "makes process 1 a batch", tries(
        "os.sched_setscheduler(1, os.SCHED_BATCH, os.sched_param(0)) or True")),
    Hostile("turns", "sets the terms of process 1 anew", tries(
        "os.sched_setparam(1, os.sched_param(0)) or True")),
    Hostile("turns", "sets all terms of process 1", calls(
        "sched_setattr", 1, "(ctypes.c_uint32 * 12)(48, 5)", 0)),
    Hostile("turns", "is nicer in the name of process 1", tries(
        "os.setpriority(os.PRIO_PROCESS, 1, 19) or True")),
    Hostile("turns", "is nicer in the name of its group", tries(
        "os.setpriority(os.PRIO_PGRP, 1, 19) or True")),
    Hostile("turns", "is nicer in the name of its account", tries(
        "os.setpriority(os.PRIO_USER, 0, 19) or True"), is_quick=True),
    Hostile("turns", "lets the disk wait for process 1", calls("ioprio_set", 1, 1, 3 << 13)),
    Hostile("turns", "lets the disk wait for its account", calls(
        "ioprio_set", 3, "os.getuid()", 3 << 13)),
    Hostile("turns", "shares a core with process 1 alone", tries(
        "libc.prctl(62, 2, 1, 0, 0) == 0 or ctypes.get_errno() != 1")),
    Hostile("turns", "moves the memory of process 1", calls(
        "migrate_pages", 1, 8, "(ctypes.c_ulong * 1)(1)", "(ctypes.c_ulong * 1)(1)")),
    Hostile("turns", "limits what process 1 may open", tries(
        "resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)) or True")),
    Hostile("turns", "limits what process 1 may map", tries(
        "resource.prlimit(1, resource.RLIMIT_AS, (1, 1)) or True")),
    Hostile("turns", "writes into every file about process 1", PRELUDE +
            "got = []\nfor name in glob.glob('/proc/1/*') + glob.glob('/proc/1/task/1/*'):\n"
            "    try: got.append((name, os.write(os.open(name, os.O_WRONLY), b'1')))\n"
            "    except OSError: pass\n"
            "print('out', got) if got else print(42)\n"),
]  # fmt: skip

FILES = [
    Hostile("files", "reads the host's passwords", tries("open('/etc/shadow').read()")),
    Hostile("files", "reads the host's accounts", tries("open('/etc/passwd').read()")),
    Hostile("files", "looks around in the root", tries(f"set(os.listdir('/')) - {ROOT_HAS}")),
    Hostile("files", "looks around in /etc", tries(f"set(os.listdir('/etc')) - {ETC_HAS}")),
    Hostile("files", "looks for devices", tries(f"set(os.listdir('/dev')) - {DEV_HAS}")),
    Hostile("files", "reads the store", tries("os.listdir('@STORE@')")),
    Hostile("files", "reads a stored answer", tries("open('@ANSWER@').read()"), is_quick=True),
    Hostile("files", "looks for other runs", tries("os.listdir('/tmp') + os.listdir('/dev/shm')")),
    Hostile("files", "reads a neighbour's folder", tries("os.listdir('@NEIGHBOUR@')")),
    Hostile("files", "writes over a neighbour's program", tries("open('@NEIGHBOUR@/main', 'wb')"),
            is_quick=True),
    Hostile("files", "searches everything for a neighbour", tries(
        "[path for root in set(os.listdir('/')) - {'proc', 'usr'}"
        " for path, _, names in os.walk('/' + root) if '@SECRET@' in names]")),
    Hostile("files", "writes over every program it can reach", PRELUDE +
            "for root in set(os.listdir('/')) - {'proc', 'usr'}:\n"
            "    for path, _, names in os.walk('/' + root):\n"
            "        for name in [one for one in names if one.startswith('main')]:\n"
            "            try: open(os.path.join(path, name), 'wb').write(b'#!/bin/false')\n"
            "            except OSError: pass\n" + ADD),
    Hostile("files", "writes over its source", tries("open('/box/main.py', 'w')")),
    Hostile("files", "removes its source", tries("os.remove('/box/main.py') or True")),
    Hostile("files", "renames its source", tries("os.rename('/box/main.py', '/box/x') or True")),
    Hostile("files", "opens its folder to all", tries("os.chmod('/box', 0o777) or True")),
    Hostile("files", "climbs out by dots", tries("open('/box/' + '../' * 20 + 'etc/shadow')")),
    Hostile("files", "climbs out by a link", tries(
        "open('/tmp/link').read()", "os.symlink('/etc/shadow', '/tmp/link')")),
    Hostile("files", "leaves a link beside its source", tries(
        "os.symlink('/etc/shadow', '/box/link') or True")),
    Hostile("files", "links the host's file", tries("os.link('/usr/bin/env', '/tmp/e') or True")),
    Hostile("files", "writes to the system", tries("open('/usr/bin/left-behind', 'w')")),
    Hostile("files", "writes to the root", tries("open('/left-behind', 'w')")),
    Hostile("files", "writes beside the devices", tries("os.mkdir('/dev/left') or True")),
    Hostile("files", "makes a device", tries(
        "os.mknod('/tmp/disk', 0o60600, os.makedev(254, 0)) or True")),
    Hostile("files", "opens by a handle", calls("open_by_handle_at", -100, 0, 0)),
    Hostile("files", "writes over the program that runs", (
        "#include <fcntl.h>\n#include <stdio.h>\nint main(void) {\n"
        '  int a = open("/proc/self/exe", O_WRONLY), b = open("/box/main", O_WRONLY);\n'
        '  puts(a < 0 && b < 0 && remove("/box/main") ? "42" : "out");\n}\n'), language="c",
            is_quick=True),
]  # fmt: skip

MOUNTS = [
    Hostile("mounts", "mounts memory over its folder", tries(
        "libc.mount(b'none', b'/box', b'tmpfs', 0, None) == 0")),
    Hostile("mounts", "takes /proc away", tries("libc.umount2(b'/proc', 2) == 0")),
    Hostile("mounts", "makes its folder writable", tries(
        "libc.mount(None, b'/box', None, 0x1020, None) == 0")),
    Hostile("mounts", "changes its root", tries("os.chroot('/tmp') or True")),
    Hostile("mounts", "turns the root around", calls("pivot_root", "b'/tmp'", "b'/tmp'")),
    Hostile("mounts", "takes new namespaces", tries("libc.unshare(0x10020000) == 0"),
            is_quick=True),
    Hostile("mounts", "is born into a new namespace", PRELUDE +
            f"got = libc.syscall({220 if NUMBERS['mount'] == 40 else 56}, 0x10000011, 0, 0, 0, 0)\n"
            "if got == 0: os._exit(0)\nprint(42 if got == -1 else 'out')\n"),
    Hostile("mounts", "enters another's namespace", tries(
        "libc.setns(os.open('/proc/self/ns/user', os.O_RDONLY), 0) == 0")),
    Hostile("mounts", "opens a file system", calls("fsopen", "b'tmpfs'", 0)),
    Hostile("mounts", "clones a mount", calls("open_tree", -100, "b'/box'", 1)),
    Hostile("mounts", "makes mounts writable", calls("mount_setattr", -100, "b'/'", 0, 0, 0)),
]  # fmt: skip

STATUS = (
    "[line for line in open('/proc/self/status') if line.startswith(('CapEff', 'CapPrm', 'CapAmb'))"
    " and int(line.split()[1], 16) or line in ('NoNewPrivs:\\t0\\n', 'Seccomp:\\t0\\n')]"
)
PRIVILEGES = [
    Hostile("privileges", "becomes root", tries("os.setuid(0) or True")),
    Hostile("privileges", "joins groups", tries("os.setgroups([0]) or True")),
    Hostile("privileges", "has something to give up", tries(STATUS), is_quick=True),
    Hostile("privileges", "makes a set-user-id program", tries(
        "subprocess.run(['/tmp/id', '-u'], capture_output=True).stdout != b'65534\\n'",
        "shutil.copy('/usr/bin/id', '/tmp/id')\nos.chmod('/tmp/id', 0o6755)")),
    Hostile("privileges", "asks su", tries(
        "subprocess.run(['/usr/bin/su', '-c', 'id -u'], stdin=subprocess.DEVNULL,"
        " capture_output=True).stdout")),
    Hostile("privileges", "gives a file to root", tries(
        "os.chown('/tmp/f', 0, 0) or True", "open('/tmp/f', 'w').close()")),
    Hostile("privileges", "comes first", tries("os.setpriority(os.PRIO_PROCESS, 0, -20) or True")),
    Hostile("privileges", "runs in real time", tries(
        "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)) or True")),
    Hostile("privileges", "raises its limits", tries(
        "resource.setrlimit(resource.RLIMIT_CPU, (99, 99)) or True")),
    Hostile("privileges", "names the host", tries("socket.sethostname('mine') or True")),
    Hostile("privileges", "sets the clock", tries(
        "time.clock_settime(time.CLOCK_REALTIME, time.time()) or True")),
    Hostile("privileges", "turns off the way to reboot", tries("libc.reboot(0) == 0")),
    Hostile("kernel", "stores a key", calls("add_key", "b'user'", "b'k'", "b'v'", 1, -4)),
    Hostile("kernel", "asks for the keys of its account", calls("keyctl", 0, -4, 1)),
    Hostile("kernel", "loads a kernel program", calls("bpf", 0, 0, 0)),
    Hostile("kernel", "opens a ring", calls("io_uring_setup", 1, 0)),
    Hostile("kernel", "makes every call that is refused", tries(
        f"[n for n in {sorted(NUMBERS.values())} if libc.syscall(n, -1, -1, -1, -1, -1, -1) != -1"
        " or ctypes.get_errno() != 1]"), is_quick=True),
]  # fmt: skip

NETWORK = [
    Hostile("network", "connects to the world", tries(
        "socket.create_connection(('192.0.2.1', 80), 0.5)")),
    Hostile("network", "sends a datagram", tries(
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))")),
    Hostile("network", "connects to a service of the host", tries(
        "socket.create_connection(('127.0.0.1', @PORT@), 0.5)"), is_quick=True),
    Hostile("network", "connects to a name of the host", tries(
        "socket.socket(socket.AF_UNIX).connect('\\0@SOCKET@') or True")),
    Hostile("network", "writes raw packets", tries(
        "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)")),
    Hostile("network", "hears raw frames", tries("socket.socket(17, socket.SOCK_RAW, 0x300)")),
    Hostile("network", "talks to the kernel", tries("socket.socket(16, socket.SOCK_RAW, 0)")),
    Hostile("network", "calls out of the virtual machine", tries(
        "socket.socket(40, socket.SOCK_STREAM)")),
    Hostile("network", "uses the kernel's ciphers", tries("socket.socket(38, 5)")),
]  # fmt: skip

ESCAPES = [*PROC, *TRACING, *TURNS, *FILES, *MOUNTS, *PRIVILEGES, *NETWORK]
