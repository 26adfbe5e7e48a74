"""Programs that take too much, will not end, leave things behind, or lie about how they ended."""

from __future__ import annotations

from tests.examples.hostile import ADD, PRELUDE, Hostile, tries

TIME, MEMORY, ERROR = ("time limit",), ("memory limit",), ("runtime error",)
WRONG, NO_COMPILE = ("wrong answer",), ("compile error",)

MEMORY_BOMBS = [
    Hostile("memory", "one large block", "x = b'x' * (1 << 30)\nprint(42)", MEMORY, is_quick=True),
    Hostile("memory", "many small blocks", "x = []\nwhile True: x.append(bytearray(1 << 20))",
            MEMORY),
    Hostile("memory", "shared out to children", PRELUDE +
            "for _ in range(8):\n    if os.fork() == 0:\n"
            "        x = bytearray(40 << 20)\n        time.sleep(5)\n"
            "time.sleep(1)\n", MEMORY, cpu_seconds=2.0, is_quick=True),
    Hostile("memory", "shared out behind a warden that comes last", PRELUDE +
            "try: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))\n"
            "except OSError: pass\n"
            "try: os.sched_setaffinity(1, {min(os.sched_getaffinity(0))})\n"
            "except OSError: pass\n"
            "for _ in range(8):\n    if os.fork() == 0:\n        x = bytearray(40 << 20)\n"
            "        while time.process_time() < 0.15: pass\n        os._exit(0)\n"
            "for _ in range(8): os.wait()\n" + ADD, MEMORY, cpu_seconds=3.0),
    Hostile("memory", "in segments that stay", tries("libc.shmget(0, 50 << 20, 0o1600) != -1")),
    Hostile("memory", "in files without a name", tries("os.memfd_create('x')")),
    Hostile("memory", "that may not be swapped", tries("libc.mlockall(3) == 0")),
    Hostile("memory", "on the stack", (
        "int deep(int n) { volatile char x[4096]; x[0] = n; return deep(n + 1) + x[0]; }\n"
        "int main(void) { return deep(0); }\n"), ERROR, language="c"),
    Hostile("memory", "recursion without end", "def f(): f()\nf()\n", ERROR),
]  # fmt: skip

PROCESS_BOMBS = [
    Hostile("processes", "forks for ever", "import os\nwhile True: os.fork()", ERROR,
            is_quick=True),
    Hostile("processes", "forks for ever, in C",
            "#include <unistd.h>\nint main(void) { for (;;) if (fork() < 0) return 1; }",
            ERROR, language="c"),
    Hostile("processes", "forks for ever and never gives up", PRELUDE +
            "while True:\n    try: os.fork()\n    except OSError: pass\n", TIME, cpu_seconds=0.5),
    Hostile("processes", "starts threads for ever", PRELUDE +
            "while True: threading.Thread(target=time.sleep, args=(9,)).start()\n",
            (*ERROR, *MEMORY, *TIME), cpu_seconds=0.5),
    Hostile("processes", "makes zombies", PRELUDE +
            "for _ in range(10):\n    if os.fork() == 0: os._exit(0)\n" + ADD),
    Hostile("processes", "burns in children", PRELUDE +
            "for _ in range(6):\n    if os.fork() == 0:\n"
            "        end = time.process_time() + 0.2\n"
            "        while time.process_time() < end: pass\n        os._exit(0)\n"
            "for _ in range(6): os.wait()\n" + ADD, TIME, cpu_seconds=0.5),
    Hostile("processes", "burns in children nobody waits for", PRELUDE +
            "try: signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nexcept OSError: pass\n"
            "for _ in range(14):\n    if os.fork() == 0:\n"
            "        end = time.process_time() + 0.04\n"
            "        while time.process_time() < end: pass\n        os._exit(0)\n"
            "    time.sleep(0.06)\n" + ADD, TIME, cpu_seconds=0.4, is_quick=True),
    Hostile("processes", "burns in grandchildren it gave away", PRELUDE +
            "for _ in range(4):\n    if os.fork() == 0:\n        if os.fork() == 0:\n"
            "            while True: pass\n        os._exit(0)\n    os.wait()\n"
            "time.sleep(2)\n" + ADD, TIME, cpu_seconds=0.3),
]  # fmt: skip

FILE_BOMBS = [
    Hostile("floods", "writes without end", "while True: print('x' * 10000)", ERROR, is_quick=True),
    Hostile("floods", "writes errors without end",
            "import sys\nwhile True: sys.stderr.write('x' * 10000)", ERROR),
    Hostile("floods", "makes a file of a terabyte", tries(
        "os.truncate('/tmp/x', 1 << 40) or True", "open('/tmp/x', 'w').close()")),
    Hostile("floods", "writes past the limit of a file", (
        '#include <stdio.h>\nint main(void) { FILE *f = fopen("/tmp/x", "w");'
        " for (;;) fputs(\"xxxxxxxxxxxxxxxx\", f); }\n"), ERROR, language="c"),
    Hostile("floods", "fills the scratch space", tries(
        "[open(f'/tmp/{n}', 'wb').write(bytes(1 << 20)) for n in range(100)]")),
    Hostile("floods", "fills the scratch space with names", PRELUDE +
            "try:\n    n = 0\n    while True:\n        n += 1\n        os.mkdir(f'/tmp/{n}')\n"
            "except OSError: print(42)\n", ("accepted", *MEMORY, *TIME), cpu_seconds=0.5),
    Hostile("floods", "opens files without end", tries("[open('/dev/null') for _ in range(5000)]")),
    Hostile("leftovers", "leaves files", PRELUDE +
            "for name in ('/tmp/left', '/dev/shm/left'):\n"
            "    if os.path.exists(name): print('out')\n"
            "    open(name, 'w').write('left')\n    os.chmod(name, 0o4755)\n" + ADD, tests=2,
            is_quick=True),
    Hostile("leftovers", "leaves a daemon", PRELUDE +
            "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
            "        time.sleep(600)\n    os._exit(0)\n" + ADD, is_quick=True),
    Hostile("leftovers", "answers after its end", PRELUDE +
            "if os.fork() == 0:\n    time.sleep(0.3)\n    os.write(1, b'42\\n')\n", WRONG),
]  # fmt: skip

STUBBORN = [
    Hostile("signals", "kills process 1 by every signal", PRELUDE +
            "for number in range(1, 65):\n    try: os.kill(1, number)\n"
            "    except OSError: pass\n" + ADD, is_quick=True),
    Hostile("signals", "kills everybody", PRELUDE +
            "try: os.kill(-1, signal.SIGKILL)\nexcept OSError: pass\n" + ADD),
    Hostile("signals", "kills its group", PRELUDE + "os.killpg(0, signal.SIGKILL)\n", ERROR),
    Hostile("signals", "kills the judge", PRELUDE +
            "for pid in (@JUDGE@, @JUDGE@ + 1):\n    try: os.kill(pid, signal.SIGKILL)\n"
            "    except OSError: pass\n" + ADD),
    Hostile("signals", "ignores every signal", PRELUDE +
            "for number in range(1, 65):\n    try: signal.signal(number, signal.SIG_IGN)\n"
            "    except (OSError, ValueError): pass\nwhile True: pass\n", TIME,
            cpu_seconds=1.0),
    Hostile("signals", "stops itself", PRELUDE + "os.kill(os.getpid(), signal.SIGSTOP)\n", TIME,
            cpu_seconds=0.1),
    Hostile("signals", "aborts", "#include <stdlib.h>\nint main(void) { abort(); }\n", ERROR,
            language="c"),
    Hostile("time", "loops", "while True: pass", TIME, cpu_seconds=0.5, is_quick=True),
    Hostile("time", "sleeps", PRELUDE + "time.sleep(600)\n", TIME, cpu_seconds=0.1),
    Hostile("time", "waits for input that never comes", PRELUDE +
            "r, w = os.pipe()\nos.read(r, 1)\n", TIME, cpu_seconds=0.1),
    Hostile("descriptors", "has more than three", tries(
        "[fd for fd in os.listdir('/proc/self/fd') if int(fd) > 3]")),
    Hostile("descriptors", "tells the judge a verdict", PRELUDE +
            "for fd in range(3, 64):\n    try: os.write(fd, b'0 0.0 0 -')\n"
            "    except OSError: pass\nprint(41)\n", WRONG, is_quick=True),
    Hostile("descriptors", "closes all and loops", PRELUDE +
            "os.closerange(0, 64)\nwhile True: pass\n", TIME, cpu_seconds=0.5),
    Hostile("descriptors", "closes its output", "import os\nos.close(1)\nos._exit(0)\n", WRONG),
    Hostile("descriptors", "exits as if by a signal", "import os\nos._exit(152)\n", ERROR),
    Hostile("races", "exchanges a file while it is opened", PRELUDE +
            "def swap():\n    while True:\n        for to in ('/box/main.py', '/etc/shadow'):\n"
            "            os.symlink(to, '/tmp/new')\n            os.rename('/tmp/new', '/tmp/x')\n"
            "threading.Thread(target=swap, daemon=True).start()\nend = time.monotonic() + 0.3\n"
            "while time.monotonic() < end:\n    try:\n"
            "        if open('/tmp/x').read().startswith('root:'): print('out')\n"
            "    except OSError: pass\n" + ADD),
    Hostile("races", "exchanges its folder between tests", PRELUDE +
            "try: os.rename('/box', '/tmp/box')\nexcept OSError: pass\n"
            "try: os.symlink('/etc', '/tmp/box')\nexcept OSError: pass\n" + ADD, tests=2),
]  # fmt: skip

COMPILING = [
    Hostile("compiling", "includes the host's accounts", '#include "/etc/passwd"\nint main() {}',
            NO_COMPILE, language="c", is_quick=True),
    Hostile("compiling", "includes the compiler's environment",
            '#include "/proc/self/environ"\nint main() {}', (*NO_COMPILE, *WRONG), language="c"),
    Hostile("compiling", "puts the host's passwords into the program",
            '__asm__(".incbin \\"/etc/shadow\\"");\nint main() {}', NO_COMPILE, language="c"),
    Hostile("compiling", "includes a stored answer", '#include "@ANSWER@"\nint main() {}',
            NO_COMPILE, language="c"),
    Hostile("compiling", "includes itself", "#include __FILE__\nint main() {}", NO_COMPILE,
            language="c"),
    Hostile("compiling", "includes without end", '#include "/dev/zero"\nint main() {}',
            NO_COMPILE, language="c"),
    Hostile("compiling", "becomes a large program", "int a[1 << 28] = {1};\nint main() {}",
            NO_COMPILE, language="c"),
]  # fmt: skip

BOMBS = [*MEMORY_BOMBS, *PROCESS_BOMBS, *FILE_BOMBS, *STUBBORN, *COMPILING]
