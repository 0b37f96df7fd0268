"""Start Stint with AUTH=on, and run the tests of the console in Chromium against it.

Options are those of Node's test runner. SHOTS names a folder for screenshots. `python -m tests.console screenshots`
writes the pictures of README.md and docs instead.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from infra.local.engine import ROOT
from tests.system.run_process import Run

FOLDER = Path(__file__).parent
PICTURES = ROOT / "docs" / "screenshots"
NODE = ROOT / ".venv-console" / "bin" / "node"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
MISSING = "stint: there is no Chromium: install it (Debian: apt-get install chromium), or set CHROMIUM to its path."


def main() -> int:
    """Return the exit code: not 0 if a test fails, or if there is no browser."""
    browser = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None or not shutil.which(browser):
        print(MISSING, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as state:
        run = Run(Path(state), 0, "--auth", "on", shell={"STINT_SCRIPTED_WORD_SECONDS": "0.02"})
        run.read_until("Ctrl-C stops")
        (key,) = set(re.findall(r"stk_\w+", "".join(run.lines)))
        settings = {"STINT_URL": f"http://127.0.0.1:{run.port}", "STINT_KEY": key, "CHROMIUM": browser}
        command = [str(NODE), *arguments(sys.argv[1:])]
        code = subprocess.run(command, env=os.environ | settings, check=False).returncode
        run.stop()
    return code


def arguments(options: Sequence[str]) -> list[str]:
    """Return the arguments of Node for the options of this command."""
    if options == ["screenshots"]:
        return [str(FOLDER / "screenshots.mjs"), str(PICTURES)]
    files = [str(file) for file in sorted(FOLDER.glob("*.test.mjs"))]
    return ["--test", "--test-concurrency=1", "--test-reporter=spec", *options, *files]


if __name__ == "__main__":
    sys.exit(main())
