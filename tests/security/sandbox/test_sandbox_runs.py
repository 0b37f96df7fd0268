"""Code in the sandbox: its output, files and limits."""

import base64
import subprocess
import sys
from pathlib import Path

import pytest
from tests.security.sandbox.conftest import FUNCTION, Sandbox


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_code_prints_and_writes_files(sandbox: Sandbox) -> None:
    code = "print(open('in.txt').read().upper())\nopen('out.txt', 'w').write('made')"

    result = sandbox.run(code, files=[{"name": "in.txt", "content": encoded("hello")}])

    assert (result["stdout"], result["stderr"], result["exit_code"]) == ("HELLO\n", "", 0)
    assert result["files"] == [{"name": "out.txt", "content": encoded("made")}]


def test_given_files_come_out_when_they_change(sandbox: Sandbox) -> None:
    code = "import os\nopen('a.txt', 'a').write('!')\nopen('b.txt', 'w').write('b')\nos.remove('c.txt')"
    files = [{"name": f"{name}.txt", "content": encoded(name)} for name in "abc"]

    result = sandbox.run(code, files=files)

    assert result["files"] == [{"name": "a.txt", "content": encoded("a!")}]
    assert (result["removed"], result["omitted"]) == (["c.txt"], [])


def test_an_error_has_the_line_of_the_code_and_no_other_frames(sandbox: Sandbox) -> None:
    result = sandbox.run("def halve(x):\n    return x / 0\nhalve(1)")

    assert result["exit_code"] == 1
    assert "return x / 0" in result["stderr"]
    assert "child.py" not in result["stderr"]
    assert result["stderr"].count('File "code.py"') == 2


@pytest.mark.parametrize(
    ("code", "status"), [("import sys; sys.exit(3)", 3), ("raise SystemExit", 0), ("raise SystemExit('bad')", 1)]
)
def test_the_exit_code_is_that_of_the_code(sandbox: Sandbox, code: str, status: int) -> None:
    assert sandbox.run(code)["exit_code"] == status


def test_an_endless_loop_ends_with_its_time(sandbox: Sandbox) -> None:
    result = sandbox.run("print('begun', flush=True)\nwhile True: pass", seconds=1)

    assert (result["stdout"], result["ended_by"]) == ("begun\n", "the time limit of 1 seconds")


def test_memory_is_limited(sandbox: Sandbox) -> None:
    [result] = sandbox.run_all({"code": "parts = []\nwhile True: parts.append(' ' * 1_000_000)"}, memory=256)

    assert "MemoryError" in result["stderr"] or result["ended_by"] == "the memory limit of 153 MB"


def test_the_memory_of_all_processes_is_limited_together(sandbox: Sandbox) -> None:
    code = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        x = b"1" * 60_000_000
        time.sleep(60)
time.sleep(60)
"""

    [result] = sandbox.run_all({"code": code, "seconds": 20}, memory=256)

    assert result["ended_by"] == "the memory limit of 153 MB"


def test_the_memory_of_an_adopted_process_is_counted(sandbox: Sandbox) -> None:
    code = """
import os, time
if os.fork() == 0:
    for _ in range(4):
        if os.fork() == 0:
            x = b"1" * 60_000_000
            time.sleep(60)
    os._exit(0)
os.wait()
time.sleep(60)
"""

    [result] = sandbox.run_all({"code": code, "seconds": 20}, memory=256)

    assert result["ended_by"] == "the memory limit of 153 MB"


def test_shared_memory_that_no_process_has_mapped_is_counted_or_refused(sandbox: Sandbox) -> None:
    code = """
import mmap, os, time
device = os.open("/dev/zero", os.O_RDWR)
kept = []
for _ in range(4):
    shared = mmap.mmap(device, 60_000_000, mmap.MAP_SHARED)
    for place in range(0, 60_000_000, 4096):
        shared[place] = 1
    kept.append(shared)
    if os.fork() == 0:  # it has the mappings, but no page of them
        time.sleep(60)
time.sleep(60)
"""

    [result] = sandbox.run_all({"code": code, "seconds": 20}, memory=256)

    assert result["ended_by"] == "the memory limit of 153 MB" or "No such file" in result["stderr"]


def test_the_folder_of_an_isolated_run_has_a_size(tmp_path: Path) -> None:
    code = """
for number in range(20):
    with open(f"large-{number}", "wb") as file:
        for _ in range(60):
            file.write(bytes(1_000_000))
"""
    folder = tmp_path / "run"
    folder.mkdir()

    [full] = Sandbox(folder, isolated=True).run_all({"code": code}, memory=4096)
    [counted] = Sandbox(folder, isolated=True).run_all({"code": code}, memory=256)

    assert "No space left on device" in full["stderr"]
    assert counted["ended_by"] == "the memory limit of 153 MB"


def test_a_run_that_is_ended_returns_the_files_that_it_has_written(sandbox: Sandbox) -> None:
    result = sandbox.run("open('made.txt', 'w').write('1')\nwhile True: pass", seconds=1)

    assert result["ended_by"] == "the time limit of 1 seconds"
    assert result["files"] == [{"name": "made.txt", "content": encoded("1")}]


def test_long_output_is_cut(sandbox: Sandbox) -> None:
    result = sandbox.run("import sys\nfor _ in range(500): print('x' * 1000)\nprint('y' * 200_000, file=sys.stderr)")

    assert (len(result["stdout"]), len(result["stderr"]), result["truncated"]) == (100_000, 100_000, True)


def test_output_in_another_encoding_is_readable(sandbox: Sandbox) -> None:
    assert sandbox.run("import os; os.write(1, b'\\xff\\x00a')")["stdout"] == "\ufffd\x00a"


def test_links_and_special_files_are_not_returned(sandbox: Sandbox) -> None:
    code = (
        "import os\nos.symlink('/etc/passwd', 'passwd')\nos.mkfifo('pipe')\nos.mkdir('folder')\n"
        "open('a', 'w').write('1')\nos.link('a', 'b')\nopen('.hidden', 'w').write('1')\nopen('c', 'w').write('2')"
    )

    result = sandbox.run(code)

    assert [file["name"] for file in result["files"]] == ["c"]
    assert set(result["omitted"]) == {"passwd", "pipe", "folder", "a", "b"}


def test_files_are_limited_in_number_and_bytes(sandbox: Sandbox) -> None:
    code = "for i in range(30): open(f'{i:02d}', 'w').write('x' * 10)\nopen('99', 'w').write('x' * 4_000_000)"

    result = sandbox.run(code)

    assert (len(result["files"]), len(result["omitted"])) == (20, 11)


def test_a_file_cannot_be_larger_than_its_limit(sandbox: Sandbox) -> None:
    result = sandbox.run("with open('big', 'wb') as f:\n  for _ in range(200): f.write(bytes(1_000_000))")

    assert "File too large" in result["stderr"] or result["exit_code"] < 0 or result["exit_code"] > 128


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({}, "no code"),
        ({"code": 1}, "no code"),
        ({"code": "x" * 200_001}, "more than 200000 bytes"),
        ({"code": "", "seconds": 1_000}, "seconds is not a number up to 120"),
        ({"code": "", "seconds": "soon"}, "seconds is not a number"),
        ({"code": "", "files": [{"name": "../a", "content": ""}]}, "slash"),
        ({"code": "", "files": [{"name": ".code.py", "content": ""}]}, "dot"),
        ({"code": "", "files": [{"name": "a", "content": "%"}]}, "not base64"),
    ],
)
def test_an_event_of_another_form_is_refused(sandbox: Sandbox, event: dict[str, object], reason: str) -> None:
    [result] = sandbox.run_all(event)

    assert reason in result["refused"]


def test_a_machine_without_namespaces_refuses_and_says_what_to_allow(tmp_path: Path) -> None:
    # Behind the filter, the function cannot make namespaces, as on a machine that forbids them.
    driver = f"""
import os, sys
os.environ["SANDBOX_NAMESPACES"] = "1"
sys.path.insert(0, {str(FUNCTION)!r})
import app, system_calls
system_calls.refuse_system_calls()
print(app.handler({{"code": "print(1)"}}, None)["refused"])
"""
    done = subprocess.run([sys.executable, "-E", "-s", "-c", driver], capture_output=True, text=True, cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert "its kernel does not let users make namespaces" in done.stdout
    assert "unprivileged_userns_clone" in done.stdout
