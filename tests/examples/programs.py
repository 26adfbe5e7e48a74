"""Programs that people hand in to a judge, with the verdict each one must get. All stay small:
every bomb goes off inside its limits."""

from __future__ import annotations

from typing import Any, NamedTuple


class Program(NamedTuple):
    name: str
    language: str
    source: str
    verdict: str
    cpu_seconds: float = 4.0  # far more than it takes, even where the machine stands still
    memory_mb: int = 64

    def submission(self, **more: Any) -> dict[str, Any]:
        return {
            "language": self.language,
            "source": self.source,
            "tests": [{"input": "20 22\n", "expected": "42\n"}],
            "cpu_seconds": self.cpu_seconds,
            "memory_mb": self.memory_mb,
            **more,
        }


ADD = "a, b = map(int, input().split())\nprint(a + b)\n"
REFUSED = "\nexcept OSError:\n    " + ADD.replace("\n", "\n    ").rstrip()

PYTHON = [
    Program("right", "python", ADD, "accepted"),
    Program("wrong", "python", "print(41)", "wrong answer"),
    Program("silent", "python", "pass", "wrong answer"),
    Program("broken", "python", "print(1/0)", "runtime error"),
    Program("no syntax", "python", "def", "runtime error"),
    Program("exits as if by SIGXCPU", "python", "import os; os._exit(152)", "runtime error"),
    Program("exit 3", "python", "import sys; sys.exit(3)", "runtime error"),
    Program("endless loop", "python", "while True: pass", "time limit", cpu_seconds=1.0),
    Program("memory hog", "python", "x = b'x' * (1 << 30)\nprint(42)", "memory limit"),
    Program("slow hog", "python", "x = []\nwhile True: x.append(bytearray(1 << 20))",
            "memory limit"),
    Program("fork bomb", "python", "import os\nwhile True: os.fork()", "runtime error"),
    Program("too much output", "python", "while True: print('x' * 10000)", "runtime error"),
    Program("network", "python",
            "import socket\ntry:\n    socket.create_connection(('192.0.2.1', 80), 0.5)\n"
            "    print('out')" + REFUSED, "accepted"),
    Program("host's files", "python",
            "try:\n    print(open('/etc/shadow').read())" + REFUSED, "accepted"),
    Program("writes beside itself", "python",
            "try:\n    open('/box/left-behind', 'w')\n    print('out')" + REFUSED, "accepted"),
    Program("writes to the system", "python",
            "try:\n    open('/usr/bin/left-behind', 'w')\n    print('out')" + REFUSED, "accepted"),
    Program("secrets of the worker", "python",
            "import os\ntext = ' '.join(os.environ)\n"
            "try:\n    text += open('/proc/1/environ').read()\nexcept OSError: pass\n"
            "print('out' if 'FAIRWAY' in text else 42)", "accepted"),
    Program("other processes", "python",
            "import os\nothers = [p for p in os.listdir('/proc') if p.isdigit()]\n"
            "print(42 if len(others) < 6 else 'out')", "accepted"),
    Program("kills its parent", "python",
            "import os, signal\ntry:\n    os.kill(1, signal.SIGKILL)\nexcept OSError: pass\n"
            + ADD, "accepted"),
    Program("leaves a child behind", "python",
            "import os, time\nif os.fork() == 0:\n    time.sleep(60)\nelse:\n    print(42)\n",
            "accepted"),
]  # fmt: skip

C_ADD = '#include <stdio.h>\nint main(void){long a,b;scanf("%ld %ld",&a,&b);printf("%ld\\n",a+b);}'
C = [
    Program("right", "c", C_ADD, "accepted"),
    Program("no C", "c", "int main(void) { return }", "compile error"),
    Program("null pointer", "c", "int main(void) { return *(volatile int *)0; }", "runtime error"),
    Program("gives up", "c", "#include <stdlib.h>\nint main(void) { abort(); }", "runtime error"),
    Program("endless loop", "c", "int main(void) { for (volatile int i = 0;;) i++; }",
            "time limit", cpu_seconds=1.0),
    Program("memory hog", "c",
            "#include <stdlib.h>\n#include <string.h>\nint main(void) {\n"
            "  for (;;) { char *p = malloc(1 << 20); if (!p) abort(); memset(p, 1, 1 << 20); }\n}",
            "memory limit"),
    Program("fork bomb", "c",
            "#include <unistd.h>\nint main(void) { for (;;) if (fork() < 0) return 1; }",
            "runtime error"),
    Program("traces another", "c",
            "#include <stdio.h>\n#include <sys/ptrace.h>\nint main(void) {\n"
            '  puts(ptrace(PTRACE_TRACEME, 0, 0, 0) == -1 ? "42" : "out");\n}', "accepted"),
]  # fmt: skip

CPP_ADD = "#include <iostream>\nint main(){long a,b;std::cin>>a>>b;std::cout<<a+b<<'\\n';}"
CPP = [
    Program("right", "cpp", CPP_ADD, "accepted"),
    Program("wrong", "cpp", "#include <cstdio>\nint main() { std::puts(\"41\"); }", "wrong answer"),
    Program("no C++", "cpp", "int main() { return nothing; }", "compile error"),
    Program("reads the host while compiling", "cpp",
            '#include "/etc/passwd"\nint main() {}', "compile error"),
]  # fmt: skip

JAVA = [
    Program("right", "java",
            "import java.util.Scanner;\npublic class Main { public static void main(String[] a) {"
            " Scanner s = new Scanner(System.in); System.out.println(s.nextLong() + s.nextLong());"
            " } }", "accepted", 4.0, 128),
    Program("memory hog", "java",
            "import java.util.*;\npublic class Main { public static void main(String[] a) {"
            " List<long[]> l = new ArrayList<>(); while (true) l.add(new long[100000]); } }",
            "memory limit", 4.0, 64),
    Program("throws", "java",
            "public class Main { public static void main(String[] a) {"
            " throw new IllegalStateException(); } }", "runtime error", 4.0, 64),
    Program("no Java", "java", "class {", "compile error", 4.0, 128),
]  # fmt: skip

EVERY = [*PYTHON, *C, *CPP, *JAVA]
