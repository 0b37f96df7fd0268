"""`make run`, `make build` and `make deploy` install all that they import, and no tool of development."""

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("layers/core", "layers/runtime", "functions", "infra/local", "infra/scripts", "infra/aws")
OWN = {"infra", "functions", "stint", "stint_runtime", *(file.stem for file in ROOT.glob("functions/*/*.py"))}
OTHERS = {"safetensors": "embeddings-local.txt", "tokenizers": "embeddings-local.txt"}
"""Packages that an option installs, with its lock."""

TOOLS = {"mypy", "pandas", "pytest", "ruff", "moto", "hypothesis", "openai", "llama-stack-client", "boto3-stubs"}


def locked(name: str) -> set[str]:
    """Return the names of the packages in a lock."""
    return set(re.findall(r"^([a-z0-9._-]+)==", (ROOT / "requirements" / name).read_text(), re.MULTILINE))


def imported_packages() -> set[str]:
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py") if "node_modules" not in file.parts]
    return {name.partition(".")[0] for file in files for name in imported_modules(ast.parse(file.read_text()))}


def imported_modules(tree: ast.AST) -> Iterator[str]:
    """Yield the modules that the code imports anywhere, except only for the types."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
        else:
            yield from imported_modules(node)


@pytest.mark.parametrize("package", sorted(imported_packages() - OWN - set(sys.stdlib_module_names)))
def test_each_imported_package_is_in_the_lock_of_what_runs(package: str) -> None:
    if package in OTHERS:
        assert package in locked(OTHERS[package])
        return

    distributions = {re.sub(r"[-_.]+", "-", name).lower() for name in packages_distributions()[package]}

    assert distributions & locked("run.txt")


def test_the_lock_of_what_runs_has_no_tool_of_development() -> None:
    assert locked("run.txt") & TOOLS == set()
    assert locked("dev.txt") >= TOOLS


def test_both_locks_have_the_same_versions() -> None:
    pins = [
        set(re.findall(r"^[a-z0-9._-]+==[^ ]+", (ROOT / "requirements" / name).read_text(), re.MULTILINE))
        for name in ("run.txt", "dev.txt")
    ]

    assert pins[0] < pins[1]


@pytest.mark.parametrize("target", ["run", "invoke", "cli", "sam-local", "build", "deploy", "console"])
def test_what_runs_does_not_install_the_tools_of_development(target: str) -> None:
    makefile = (ROOT / "Makefile").read_text()

    (needed,) = re.findall(rf"^{target}: (.*?) ##", makefile, re.MULTILINE)

    assert "$(VENV)/.installed" not in needed
    assert "setup" not in needed.split()
