"""Add bytecode to the output of `sam build`, so that cold starts do not compile.

Lambda's file system is read-only and unzipped files get new times, so the bytecode is of the unchecked kind, which is
never compared with its source (https://peps.python.org/pep-0552/). Only the target's own Python version can compile it.
The bytecode of layers is then moved into archives, which are read faster (`archives.py`).
"""

import shutil
import subprocess
import sys
from pathlib import Path

from infra.scripts.archives import archive_layers
from infra.scripts.build import read_build


def main() -> int:
    build = read_build(Path.cwd())
    if build is None:
        sys.exit("nothing is built: run `make build`")
    runtime = build.runtime
    interpreter = find_interpreter(runtime)
    if interpreter is None:
        print(f"No bytecode: {runtime} is not installed, so every cold start compiles (about a second).")
        return 0
    for folder in sorted(path for path in build.folder.iterdir() if path.is_dir()):
        compile_folder(interpreter, folder)
    modules = archive_layers(build.folder, runtime.replace("python", "cpython-").replace(".", ""))
    print(f"Bytecode for {runtime} added: {modules} modules in the archives of the layers.")
    return 0


def find_interpreter(runtime: str) -> str | None:
    """Return an interpreter of exactly this version that starts, or None."""
    for candidate in (sys.executable, shutil.which(runtime)):
        if candidate is None:
            continue
        version = "import sys; print('python%d.%d' % sys.version_info[:2])"
        answer = subprocess.run([candidate, "-c", version], capture_output=True, text=True, check=False)
        if answer.stdout.strip() == runtime:
            return candidate
    return None


def compile_folder(interpreter: str, folder: Path) -> None:
    """Compile in place, with the files' paths in Lambda for tracebacks."""
    place = "/opt" if (folder / "python").is_dir() else "/var/task"
    command = [interpreter, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-j", "0"]
    subprocess.run([*command, "-s", str(folder), "-p", place, str(folder)], check=True)


if __name__ == "__main__":
    sys.exit(main())
