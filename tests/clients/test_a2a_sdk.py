"""Tasks with the newest SDK of A2A, against `make run AUTH=on` with its worker."""

from pathlib import Path

from infra.local.engine import ROOT
from tests.clients.environments import run_client
from tests.clients.snippets import PROTOCOLS
from tests.system.test_auth_clients import AuthorizedRun

ENVIRONMENT = ROOT / f".venv-{PROTOCOLS}"
SCRIPT = Path(__file__).with_name("a2a_sdk_client.py")

PRINTED = """
card Clock Knows the time. JSONRPC 1.0
url True True False
server card Stint ['apiKey']
stream WORKING Hello you COMPLETED
document True COMPLETED Again
get Again 1 say: Again
list True True ''
cancel TaskNotCancelableError
ended UnsupportedOperationError
subscribe UnsupportedOperationError
unknown TaskNotFoundError
context InvalidParamsError
push PushNotificationNotSupportedError
version VersionNotSupportedError
immediately SUBMITTED
followed True COMPLETED
worker COMPLETED One two three four five six seven eight
asked INPUT_REQUIRED tool_call get_time
answered True get_time answered: noon COMPLETED
cancelled CANCELED
"""


def test_the_sdk_of_a2a_runs_tasks(stint: AuthorizedRun, tmp_path: Path) -> None:
    command = [str(ENVIRONMENT / "bin" / "python"), str(SCRIPT)]

    done = run_client(ENVIRONMENT, command, stint, tmp_path)

    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == PRINTED.strip().splitlines()
