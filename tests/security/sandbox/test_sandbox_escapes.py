"""Attempts of code to leave the sandbox."""

import base64
import os
import sys

import pytest
from tests.security.sandbox.conftest import Sandbox

SOCKETS = """
import ctypes, errno, socket, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
for family in (1, 2, 10, 16, 17, 40):
    for kind in (1, 2, 3):
        assert libc.socket(family, kind, 0) == -1 and ctypes.get_errno() == errno.EPERM, family
pair = (ctypes.c_int * 2)()
assert libc.socketpair(1, 1, 0, pair) == -1
assert libc.syscall(425, 1, ctypes.create_string_buffer(256)) == -1  # io_uring_setup
try:
    socket.create_connection(("127.0.0.1", 9001), 1)
except OSError as error:
    print(error.errno == errno.EPERM)
done = subprocess.run([sys.executable, "-c", "import socket; socket.socket()"], capture_output=True, text=True)
print("PermissionError" in done.stderr)
"""

PARENTS = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
found = []
for process in {os.getppid(), *(int(name) for name in os.listdir("/proc") if name.isdigit())} - {0, os.getpid()}:
    for name in ("environ", "mem", "maps", "fd", "cwd", "auxv"):
        path = f"/proc/{process}/{name}"
        try:
            content = os.listdir(path) if name == "fd" else open(path, "rb").read(100)
            if content and process != os.getpid():
                found.append(path)
        except OSError:
            pass
    for call in (libc.ptrace, libc.kill, libc.setpriority):
        assert call(16 if call is libc.ptrace else process, process if call is libc.ptrace else 9, 0, 0) == -1
    assert libc.syscall(302, process, 7, None, ctypes.create_string_buffer(16)) == -1  # prlimit64
    assert libc.syscall(434, process, 0) == -1  # pidfd_open
    assert libc.syscall(310, process, None, 0, None, 0, 0) == -1  # process_vm_readv
print(found)
print("sandbox-secret" in str(os.environ))
"""


def test_code_can_open_no_socket(sandbox: Sandbox) -> None:
    result = sandbox.run(SOCKETS)

    assert (result["stdout"], result["stderr"]) == ("True\nTrue\n", "")


def test_code_cannot_reach_the_memory_or_environment_of_its_parent(sandbox: Sandbox) -> None:
    result = sandbox.run(PARENTS)

    assert (result["stdout"], result["stderr"]) == ("[]\nFalse\n", "")


def test_the_environment_has_no_credentials(sandbox: Sandbox) -> None:
    result = sandbox.run("import os; print(sorted(os.environ))")

    assert "AWS" not in result["stdout"]


def test_code_cannot_hold_memory_outside_of_its_processes(sandbox: Sandbox) -> None:
    code = """
import ctypes, errno, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
numbers = {"x86_64": (319, 447), "aarch64": (279, 447)}[os.uname().machine]
for number in numbers:
    assert libc.syscall(number, b"", 0) == -1 and ctypes.get_errno() == errno.EPERM, number
for flags in (mmap.MAP_SHARED | mmap.MAP_ANONYMOUS, 3 | mmap.MAP_ANONYMOUS):
    try:
        mmap.mmap(-1, 4096, flags)
        print("allowed")
    except PermissionError:
        print("refused")
print(len(mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)))
open("file", "wb").write(bytes(4096))
print(len(mmap.mmap(os.open("file", os.O_RDWR), 4096)))
ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1)()
"""

    result = sandbox.run(code)

    assert (result["stdout"], result["stderr"]) == ("refused\nrefused\n4096\n4096\n", "")


def test_code_cannot_make_namespaces_or_mounts(sandbox: Sandbox) -> None:
    code = """
import ctypes
libc = ctypes.CDLL(None)
print(libc.unshare(0x10000000), libc.mount(b"none", b"/tmp", b"tmpfs", 0, None), libc.chroot(b"/"))
print(libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0), libc.syscall(435, None, 0))
"""

    assert sandbox.run(code)["stdout"] == "-1 -1 -1\n-1 -1\n"


def test_code_cannot_send_signals_over_file_descriptors(sandbox: Sandbox) -> None:
    code = """
import fcntl, os
reader, _ = os.pipe()
for command in (fcntl.F_SETOWN, fcntl.F_SETSIG):
    try:
        fcntl.fcntl(reader, command, os.getppid() if command == fcntl.F_SETOWN else 9)
        print("allowed")
    except PermissionError:
        print("refused")
"""

    assert sandbox.run(code)["stdout"] == "refused\nrefused\n"


def test_a_fork_bomb_ends_with_its_time(sandbox: Sandbox) -> None:
    bomb = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
    left = "import os\nprint(len([name for name in os.listdir('/proc') if name.isdigit()]) < 8)"

    bombed, after = sandbox.run_all({"code": bomb, "seconds": 1}, {"code": left})

    assert bombed["ended_by"] is not None
    assert after["stdout"] == "True\n"


@pytest.mark.parametrize("detach", ["os.setsid()", "os.setpgid(0, 0)"])
def test_a_process_that_detaches_itself_does_not_survive(sandbox: Sandbox, detach: str) -> None:
    daemon = f"""
import os, time
if os.fork() == 0:
    {detach}
    if os.fork() == 0:
        os.close(1), os.close(2)
        time.sleep(600)
    os._exit(0)
os.wait()
"""
    left = """
import os
states = [open(f"/proc/{p}/stat").read().rpartition(")")[2].split()[0] for p in os.listdir("/proc") if p.isdigit()]
print(len([state for state in states if state != "Z"]) <= 3)
"""

    ran, after = sandbox.run_all({"code": daemon, "seconds": 5}, {"code": left})

    assert (ran["exit_code"], ran["ended_by"]) == (0, None)
    assert after["stdout"] == "True\n"


def test_a_run_finds_nothing_that_an_earlier_one_wrote(sandbox: Sandbox) -> None:
    write = """
import os
for folder in ("/tmp", "/dev/shm", "/var/tmp", os.getcwd(), os.path.dirname(os.getcwd())):
    try:
        os.makedirs(f"{folder}/marked/deep")
        open(f"{folder}/marked/deep/marked-file", "w").write("x")
        os.chmod(f"{folder}/marked/deep", 0)
        os.chmod(f"{folder}/marked", 0)
    except OSError:
        pass
"""
    search = """
import os
roots = ("/tmp", "/dev/shm", "/var/tmp", os.path.dirname(os.getcwd()))
names = [name for root in roots for _, folders, files in os.walk(root) for name in (*folders, *files)]
print([name for name in names if "marked" in name])
"""

    _, found = sandbox.run_all({"code": write}, {"code": search})

    assert found["stdout"] == "[]\n"


def test_code_cannot_change_the_function(sandbox: Sandbox) -> None:
    code = """
import os, sys
paths = open("/proc/self/cmdline").read().split("\\0")
folder = next(os.path.dirname(path) for path in paths if path.endswith("child.py"))
try:
    open(os.path.join(folder, "app.py"), "a").write("changed")
except OSError:
    print("refused")
"""

    assert sandbox.run(code)["stdout"] == "refused\n"


def test_code_in_namespaces_sees_no_other_files(sandbox: Sandbox) -> None:
    if not sandbox.isolated:
        pytest.skip("in Lambda, the machine has no other files")
    code = "import os\nprint(sorted(os.listdir('/')), os.path.exists('/etc/passwd'), os.path.exists('/root/.ssh'))"

    output = sandbox.run(code)["stdout"]

    assert "home" not in output
    assert output.endswith("False False\n")


def test_system_v_memory_and_queues_are_refused(sandbox: Sandbox) -> None:
    code = """
import ctypes
libc = ctypes.CDLL(None)
print(libc.shmget(1, 10, 950), libc.msgget(1, 950), libc.semget(1, 1, 950))
"""

    assert sandbox.run(code)["stdout"] == "-1 -1 -1\n"


SWAPPED = """
import os
folder = os.getcwd()
open("kept.txt", "w").write("kept")
os.chdir("/")
os.rename(folder, folder + "x")
os.symlink({target!r}, folder)
"""


@pytest.mark.parametrize("target", ["/proc/self", "/proc/1", "/"])
def test_code_cannot_put_something_else_in_the_place_of_its_folder(sandbox: Sandbox, target: str) -> None:
    result = sandbox.run(SWAPPED.format(target=target))

    assert "sandbox-secret" not in str([base64.b64decode(file["content"]) for file in result["files"]])
    assert {file["name"] for file in result["files"]} <= {"kept.txt"}


NAMES = """
import os
for name in (b"\\xff\\xfe.txt", b"new\\nline.txt", "\\u202etxt.exe".encode(), "\\u00e9" .encode() * 120, b"fine.txt"):
    open(name, "w").write("x")
for number in range(100):
    os.mkdir(f"folder{number}")
os.chmod(".", 0)
"""


def test_names_that_cannot_be_shown_are_omitted_and_counted(sandbox: Sandbox) -> None:
    result = sandbox.run(NAMES)

    assert [file["name"] for file in result["files"]] == ["fine.txt"]
    assert len(result["omitted"]) == 20
    assert all(name.isascii() and name.isprintable() for name in result["omitted"])


def test_a_file_with_a_bad_name_is_refused(sandbox: Sandbox) -> None:
    names = ["../x", "a/b", ".code.py", "", "x" * 201, "\ud800", "a\nb", "a\x00b", 7]

    results = sandbox.run_all(*({"code": "print(1)", "files": [{"name": name, "content": ""}]} for name in names))

    assert all("A file has no name" in result["refused"] for result in results)


def test_a_given_file_is_not_imported_before_the_code_runs(sandbox: Sandbox) -> None:
    names = sorted({*sys.stdlib_module_names, "system_calls", "sitecustomize", "usercustomize"})
    trap = base64.b64encode(b"import os; os.write(1, f'{__name__} was imported'.encode())").decode()
    given = [{"name": f"{name}.py", "content": trap} for name in names]

    results = sandbox.run_all(
        *(
            {"code": "import os; os.write(1, b'done')", "files": given[at : at + 100]}
            for at in range(0, len(given), 100)
        )
    )

    assert [result["stdout"] for result in results] == ["done"] * len(results)


def test_names_of_any_language_come_back_and_no_file_is_a_link(sandbox: Sandbox) -> None:
    names = ["\u00e4\u4e2d\U0001f999.csv", "e\u0301.txt", "-rf", "~root", "$HOME", "x" * 200]
    code = (
        "import os; [(open(n, 'a').write('+'), print(os.lstat(n).st_mode, os.lstat(n).st_nlink)) for n in os.listdir()]"
    )

    result = sandbox.run(code, files=[{"name": name, "content": "YQ=="} for name in names])

    assert result["stdout"].split() == ["33188", "1"] * len(names)
    assert {each["name"]: base64.b64decode(each["content"]) for each in result["files"]} == dict.fromkeys(names, b"a+")


def test_code_cannot_raise_its_limits(sandbox: Sandbox) -> None:
    code = """
import resource
for name in ("CPU", "AS", "NPROC", "NOFILE", "FSIZE", "CORE"):
    limit = getattr(resource, f"RLIMIT_{name}")
    soft, hard = resource.getrlimit(limit)
    try:
        resource.setrlimit(limit, (hard + 1, hard + 1))
    except (ValueError, OSError):
        print(name, soft == hard >= 0, soft if name == "CPU" else "")
"""

    output = sandbox.run(code, seconds=7)["stdout"].split("\n")

    assert [line.strip() for line in output] == [
        "CPU True 7",
        *(f"{name} True" for name in ("AS", "NPROC", "NOFILE", "FSIZE", "CORE")),
        "",
    ]


def test_a_given_file_that_becomes_something_else_is_not_returned(sandbox: Sandbox) -> None:
    code = """
import os
for name in os.listdir():
    os.remove(name)
os.symlink("/proc/self/environ", "a")
os.symlink("/etc", "b")
os.mkfifo("c")
os.mkdir("d")
open(".e", "w").write("x")
os.link(".e", "f")
"""

    result = sandbox.run(code, files=[{"name": name, "content": "YQ=="} for name in "abcdfg"])

    assert (result["files"], result["omitted"], result["removed"]) == ([], ["a", "b", "c", "d", "f"], ["g"])


LEFT = """
import os
roots = [os.path.dirname(os.getcwd()), *([] if os.getcwd().startswith("/tmp/") else ["/tmp"])]
print([name for root in roots for name in os.listdir(root) if name.startswith("run-") and name not in os.getcwd()])
"""


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.symlink('/etc', 'link'); os.mkdir('d'); os.chmod('d', 0)",
        "import os\nfor _ in range(1_100): os.mkdir('d'); os.chdir('d')\nos.chmod('..', 0)",
        "import os\nfor _ in range(40): os.mkdir('d' * 255); os.chdir('d' * 255)",
        "import os; os.mkdir('\\udcff'); open('\\udcff/\\udcfe', 'w'); os.chmod('.', 0)",
        "for n in range(500): open(f'{n}', 'w')",
    ],
)
def test_whatever_code_leaves_in_its_folder_is_removed(sandbox: Sandbox, code: str) -> None:
    made, left = sandbox.run_all({"code": code}, {"code": LEFT})

    assert made["stderr"] == ""
    assert left["stdout"] == "[]\n"


def test_a_run_finds_nothing_of_one_whose_function_died(sandbox: Sandbox) -> None:
    if sandbox.isolated:
        pytest.skip("only in Lambda, all temporary files of a machine belong to its runs")
    left = sandbox.folder / "run-died"
    left.mkdir()
    (left / "secret.txt").write_text("x")
    for path in (left, left / "secret.txt"):
        os.chown(path, sandbox.owner, sandbox.owner)
    code = "import os; print([name for _, folders, files in os.walk('..') for name in (*folders, *files)])"

    assert "secret.txt" not in sandbox.run(code)["stdout"]
