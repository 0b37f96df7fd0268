import os
import platform
import stat
import sys
import venv
from pathlib import Path
from typing import NoReturn

import pytest
import yaml
from infra.local.engine import ROOT

BUILD = ROOT / ".aws-sam" / "build"
RUNTIME = f"python{sys.version_info[0]}.{sys.version_info[1]}"
ARCHITECTURE = "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"
COMMAND = f"make build RUNTIME={RUNTIME} ARCHITECTURE={ARCHITECTURE}"


@pytest.fixture(scope="session")
def build() -> Path:
    """The output of `make build` for this machine, made of the sources as they are."""
    if not (BUILD / "template.yaml").is_file():
        miss(f"nothing is built: {COMMAND}")
    target = yaml.safe_load((BUILD / "template.yaml").read_text())["Resources"]["CoreLayer"]["Metadata"]
    built_for = f"{target['BuildMethod']} on {target['BuildArchitecture']}"
    if built_for != f"{RUNTIME} on {ARCHITECTURE}":
        miss(f"built for {built_for}: {COMMAND}")
    if stale := changed_since_build():
        miss(f"built before {stale} changed: {COMMAND}")
    return BUILD


def miss(reason: str) -> NoReturn:
    """Skip; where everything must be checked, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def changed_since_build() -> Path | None:
    """A source that differs from what was built of it, or is not in it."""
    places = [(ROOT / "layers/core/stint", BUILD / "CoreLayer/python/stint")]
    places += [(ROOT / "layers/runtime/python", BUILD / "RuntimeLayer/python")]
    places += [(folder, BUILD / folder.name.capitalize()) for folder in sorted((ROOT / "functions").iterdir())]
    for sources, built in places:
        for source in sources.rglob("*.py"):
            copy = built / source.relative_to(sources)
            if not copy.is_file() or copy.read_bytes() != source.read_bytes():
                return source.relative_to(ROOT)
    return None


@pytest.fixture(scope="session")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the standard library alone, which writes on standard error what it imports, and from where."""
    empty = tmp_path_factory.mktemp("empty")
    venv.EnvBuilder(symlinks=True).create(empty)
    script = tmp_path_factory.mktemp("bin") / RUNTIME
    script.write_text(f'#!/bin/sh\nexec "{empty}/bin/{RUNTIME}" -v "$@"\n')
    script.chmod(stat.S_IRWXU)
    return script
