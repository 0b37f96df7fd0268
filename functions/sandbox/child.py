"""The process that runs the code: `python -E -s child.py FOLDER CODE MEMORY SECONDS`. It is started for one run.

It limits itself, gives up system calls, and then runs the code as `__main__` in the folder.
"""

import linecache
import os
import resource
import sys
import traceback
from pathlib import Path
from types import ModuleType

from system_calls import refuse_system_calls

MOST_PROCESSES, MOST_FILES, LARGEST_FILE = 64, 128, 64 * 1024 * 1024


def limit(memory: int, seconds: int) -> None:
    """Limit this process: bytes of memory, seconds of CPU time, processes of its user, open files, bytes of a file."""
    for name, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_NPROC, MOST_PROCESSES),
        (resource.RLIMIT_NOFILE, MOST_FILES),
        (resource.RLIMIT_FSIZE, LARGEST_FILE),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(name)
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(name, (value, value))


def run(text: str) -> int:
    """Run the code as the main module, and return the exit code. An error is printed without this file's frames."""
    main = ModuleType("__main__")
    sys.modules["__main__"] = main
    sys.argv = ["code.py"]
    linecache.cache["code.py"] = (len(text), None, text.splitlines(keepends=True), "code.py")
    try:
        exec(compile(text, "code.py", "exec"), main.__dict__)  # noqa: S102 - the purpose of this process
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:  # noqa: BLE001 - anything that the code raises
        trace = error.__traceback__
        shown = trace.tb_next if trace else None
        traceback.print_exception(type(error), error, shown)
        return 1
    return 0


def main(folder: str, code: str, memory: str, seconds: str) -> int:
    os.chdir(folder)
    text = Path(code).read_text()
    os.unlink(code)
    limit(int(memory), int(seconds))
    refuse_system_calls()
    # Only here may a module of the folder be imported.
    sys.path[:] = [folder, *(path for path in sys.path if path != os.path.dirname(__file__)), "/opt/python"]
    status = run(text)
    sys.stdout.flush()
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
