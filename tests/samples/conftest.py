import os
import stat
import venv
from pathlib import Path
from typing import NoReturn

import pytest
from infra.local.engine import ROOT
from infra.scripts.build import ARCHITECTURE, RUNTIME, read_build

COMMAND = f"make build RUNTIME={RUNTIME} ARCHITECTURE={ARCHITECTURE}"


@pytest.fixture(scope="session")
def build() -> Path:
    """Return the output of `make build` for this machine, if it was built from the current sources."""
    found = read_build(ROOT)
    if found is None:
        miss(f"nothing is built: {COMMAND}")
    if str(found) != f"{RUNTIME} on {ARCHITECTURE}":
        miss(f"built for {found}: {COMMAND}")
    if stale := found.changed_source():
        miss(f"built before {stale} changed: {COMMAND}")
    return found.folder


def miss(reason: str) -> NoReturn:
    """Skip the test, or fail in CI, where everything must be checked."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python with only the standard library, which logs imports and their files to standard error."""
    empty = tmp_path_factory.mktemp("empty")
    venv.EnvBuilder(symlinks=True).create(empty)
    script = tmp_path_factory.mktemp("bin") / RUNTIME
    script.write_text(f'#!/bin/sh\nexec "{empty}/bin/{RUNTIME}" -v "$@"\n')
    script.chmod(stat.S_IRWXU)
    return script
