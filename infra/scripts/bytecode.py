"""Add bytecode to the output of `sam build`, so that cold starts do not compile, and remove what PROTOCOLS leaves out.

Lambda's file system is read-only and unzipped files get new times, so the bytecode is of the unchecked kind, which is
never compared with its source (https://peps.python.org/pep-0552/). Only the target's own Python version can compile it.
The bytecode of layers is then moved into archives, which are read faster (`archives.py`).
"""

import marshal
import shutil
import subprocess
import sys
from pathlib import Path

from infra.scripts.archives import archive_layers
from infra.scripts.build import read_build
from infra.scripts.protocol_options import leave_out
from infra.scripts.record_texts import Texts


def main() -> int:
    build = read_build(Path.cwd())
    if build is None:
        sys.exit("nothing is built: run `make build`")
    leave_out(build.package, build.left_out)
    runtime = build.runtime
    interpreter = find_interpreter(runtime)
    if interpreter is None:
        print(f"No bytecode: {runtime} is not installed, so every cold start compiles (about a second).")
        return 0
    for folder in sorted(path for path in build.folder.iterdir() if path.is_dir()):
        compile_folder(interpreter, folder)
    texts = record_texts() if interpreter == sys.executable else {}
    modules = archive_layers(build.folder, runtime.replace("python", "cpython-").replace(".", ""), texts)
    print(f"Bytecode for {runtime} added: {modules} modules and {len(texts)} texts in the archives of the layers.")
    if not texts:
        print(f"The environment is not of {runtime}, so every cold start compiles texts (a seventh of its time).")
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


def record_texts() -> Texts:
    """Return the texts that imports compile, with their code, from an environment with all packages."""
    command = [sys.executable, "-m", "infra.scripts.record_texts"]
    texts: Texts = marshal.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)  # noqa: S302 - our own
    return texts


if __name__ == "__main__":
    sys.exit(main())
