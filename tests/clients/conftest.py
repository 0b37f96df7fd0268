from collections.abc import Iterator

import pytest
from tests.system.run_process import Run
from tests.system.test_auth_clients import PATHS, AuthorizedRun


@pytest.fixture(scope="session")
def stint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuthorizedRun]:
    shell = {"STINT_SCRIPTED_WORD_SECONDS": "0", **PATHS}
    run = Run(tmp_path_factory.mktemp("clients"), 0, "--auth", "on", shell=shell)
    run.read_until("Ctrl-C stops")
    yield AuthorizedRun(run)
    run.stop()
