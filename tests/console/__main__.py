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
from tests.servers.ports import free_port
from tests.system.printed_commands import read_blocks
from tests.system.run_process import Run

FOLDER = Path(__file__).parent
PICTURES = ROOT / "docs" / "screenshots"
TUTORIAL = ROOT / "docs" / "tutorial.md"
SCREENSHOTS = ["screenshots"]
NODE = ROOT / ".venv-console" / "bin" / "node"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
MISSING = "stint: there is no Chromium: install it (Debian: apt-get install chromium), or set CHROMIUM to its path."

SHELL = {
    "STINT_SCRIPTED_WORD_SECONDS": "0.02",
    "STINT_USAGE_SUMS": "true",
    "STINT_PRICES": '{"scripted/demo": {"input": 250, "output": 2000}}',
    "STINT_OIDC_AUDIENCE": "stint-test",
    "STINT_OIDC_TENANT": "people",
}
"""Settings that some tests need. The issuer runs in `oidc.test.mjs`, whose pages alone know its client."""


def main() -> int:
    """Return the exit code: not 0 if a test fails, or if there is no browser."""
    browser = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None or not shutil.which(browser):
        print(MISSING, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as state:
        port = free_port()
        shell = SHELL | {"STINT_OIDC_ISSUER": f"http://127.0.0.1:{port}"}
        tools = write_tutorial_tool(Path(state)) if sys.argv[1:] == SCREENSHOTS else None
        run = Run(Path(state) / "stint", 0, "--auth", "on", shell=shell, tools=tools)
        run.read_until("Ctrl-C stops")
        (key,) = set(re.findall(r"stk_\w+", "".join(run.lines)))
        settings = {"STINT_URL": f"http://127.0.0.1:{run.port}", "STINT_KEY": key, "CHROMIUM": browser}
        settings["STINT_ISSUER_PORT"] = str(port)
        command = [str(NODE), *arguments(sys.argv[1:])]
        code = subprocess.run(command, env=os.environ | settings, check=False).returncode
        run.stop()
    return code


def write_tutorial_tool(folder: Path) -> Path:
    """Run the command of the tutorial that writes a tool beside the repository, and return its template."""
    (command,) = (each.text for each in read_blocks(TUTORIAL) if "template.yaml <<" in each.text)
    (folder / "stint").mkdir()
    subprocess.run(["bash", "-ec", command], cwd=folder / "stint", check=True)
    return folder / "shop-tools" / "template.yaml"


def arguments(options: Sequence[str]) -> list[str]:
    """Return the arguments of Node for the options of this command."""
    if options == SCREENSHOTS:
        return [str(FOLDER / "screenshots.mjs"), str(PICTURES)]
    # Files run at the same time: each has tenants of its own. Many tests wait for a pace of the scripted model.
    files = [str(file) for file in sorted(FOLDER.glob("*.test.mjs"))]
    return ["--test", "--test-concurrency=4", "--test-reporter=spec", *options, *files]


if __name__ == "__main__":
    sys.exit(main())
