"""Start Stint, run Node's tests against it, and check its responses against the contract."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.openresponses.watch import take_complaints
from tests.system.run_process import Run

FOLDER = Path(__file__).parent


def main() -> int:
    """Return the exit code: not 0 if a test fails or a response violates the contract."""
    with tempfile.TemporaryDirectory() as state:
        run = Run(Path(state), 0, shell={"STINT_SCRIPTED_WORD_SECONDS": "0.005"})
        run.read_until("Ctrl-C stops")
        files = [str(file) for file in sorted(FOLDER.glob("*.test.mjs"))]
        command = ["node", "--test", "--test-reporter=spec", *sys.argv[1:], *files]
        code = subprocess.run(command, env=os.environ | {"STINT_URL": run.url}, check=False).returncode
        run.stop()
    complaints = take_complaints()
    for complaint in complaints:
        print(complaint)
    return code or bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
