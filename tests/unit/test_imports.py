"""Imports of the package and the functions: few modules, and no effect outside the process."""

import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FUNCTIONS = sorted(
    path.parent.name for path in ROOT.glob("functions/*/app.py") if path.parent.name not in ("sandbox", "console")
)

# Third-party packages that a cold start may load. Each costs every user a wait: another one needs a reason.
ALLOWED = {
    *(
        "annotated_doc",
        "annotated_types",
        "anyio",
        "aws_lambda_powertools",
        "botocore",
        "fastapi",
        "jmespath",
        "mangum",
    ),
    *("pydantic", "pydantic_core", "snapshot_restore_py", "sniffio", "starlette"),
    *("typing_extensions", "typing_inspection"),
}

# Modules that a cold start loads, at most.
MODULES = {
    "authorizer": 345,
    "admin": 606,
    "agents": 597,
    "knowledge": 626,
    "october": 636,
    "openai_agents": 642,
    "protocols": 578,
    "registry": 598,
    "responses": 678,
    "turns": 586,
    "worker": 627,
}

# The second import finds every library loaded: what reads the environment then is the package itself.
SECOND_IMPORT = """
import importlib, os, pkgutil, socket, sys
from collections.abc import Mapping
import botocore.client, httpx
import stint

def import_all():
    for module in pkgutil.walk_packages(stint.__path__, "stint."):
        importlib.import_module(module.name)
    return [name for name in sys.modules if name.startswith("stint.")]

def refuse(*_, **__):
    raise AssertionError("a client was made, or a connection")

class Poisoned(Mapping):
    def __getitem__(self, name):
        if str(name).startswith("PYDANTIC_"):  # pydantic's own, at every model
            raise KeyError(name)
        raise AssertionError(f"the environment was read: {name}")

    def __iter__(self):
        raise AssertionError("the environment was read")

    __len__ = __iter__

for name in import_all():
    del sys.modules[name]
os.environ = Poisoned()
botocore.client.ClientCreator.create_client = httpx.Client.__init__ = httpx.AsyncClient.__init__ = refuse
socket.socket.connect = socket.getaddrinfo = refuse
print(len(import_all()))
print("imported", file=sys.stderr)
for statement in sys.argv[1:]:
    try:
        exec(statement)
    except AssertionError as error:
        print(error, file=sys.stderr)
"""
EFFECTS = {
    "from stint.settings import load_settings; load_settings()": "the environment was read",
    "from stint.tools.http_calls import httpx; httpx.AsyncClient()": "a client was made",
    "import botocore.client as c; c.ClientCreator.create_client(None, 's3')": "a client was made",
    "socket.create_connection(('127.0.0.1', 9))": "or a connection",
}
"""Statements after the second import, and the complaint about each one."""

# The modules of a cold start, before anything else is imported; then its type adapters and its routes that are built.
COLD_START = """
import app, sys
modules = list(sys.modules)
import asyncio, json, pydantic
from fastapi.routing import APIRoute

def built():
    return [each.path for each in app.app.router.routes if isinstance(each, APIRoute) and "dependant" in vars(each)]

async def call(path):
    scope = {"type": "http", "method": "PUT", "path": path, "raw_path": path.encode(), "root_path": "", "headers": [],
             "query_string": b"", "scheme": "http", "http_version": "1.1"}
    await app.app(scope, lambda: asyncio.sleep(0, {"type": "http.request"}), lambda message: asyncio.sleep(0))

adapters = {f"{module}.{name}": value for module, loaded in list(sys.modules.items()) if module.startswith("stint.")
    for name, value in vars(loaded).items() if isinstance(value, pydantic.TypeAdapter)}
complete = [name for name, adapter in adapters.items() if adapter.pydantic_complete]
routes = None
if hasattr(app, "app"):
    routes = [built()]
    asyncio.run(call("/v1/nothing"))
    routes.append(built())
print(json.dumps([modules, complete, routes]))
"""
SANDBOX_START = "import app, json, sys; print(json.dumps([list(sys.modules), [], None]))"


@dataclass(frozen=True)
class ColdStart:
    """A new process that has imported a function. `built` has its routes that were built, before and after a call."""

    modules: frozenset[str]
    complete: tuple[str, ...]
    built: list[list[str]] | None
    complaints: str


@cache
def run(program: str, *arguments: str, path: Path = ROOT / "layers" / "core") -> "subprocess.CompletedProcess[str]":
    paths = os.pathsep.join((str(path), str(ROOT / "layers" / "core")))
    environment = {"PATH": os.defpath, "PYTHONPATH": paths, "STINT_AUTH": "none"}
    command = (sys.executable, "-c", program, *arguments)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@cache
def start(function: str) -> ColdStart:
    program = SANDBOX_START if function == "sandbox" else COLD_START
    done = run(program, path=ROOT / "functions" / function)
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])  # after the log line of the call
    modules, complete, built = found
    return ColdStart(frozenset(modules), tuple(complete), built, done.stderr)


def modules_of(function: str) -> frozenset[str]:
    return start(function).modules


def test_importing_the_package_reads_no_environment_and_makes_no_client() -> None:
    done = run(SECOND_IMPORT, *EFFECTS)

    assert done.stderr.splitlines()[0] == "imported"
    assert int(done.stdout) > 60


def test_only_the_settings_read_the_environment() -> None:
    """The entry points pass `load_settings` to the compositions; all other modules receive a Settings object.

    When a client is made, `aws/environment.py` reads the variables of AWS's SDKs, and `http1/proxies.py` those of
    proxies.
    """
    package = ROOT / "layers" / "core" / "stint"
    entry_points = {package / "cli" / "__main__.py"}
    own = {package / "settings.py", package / "aws" / "environment.py", package / "http1" / "proxies.py"}
    readers = own | entry_points
    sources = {path: path.read_text() for path in package.rglob("*.py") if path not in readers}
    reads = re.compile(r"os\.environ|getenv|\bSettings\(|\bload_settings\b")

    assert [str(path.relative_to(package)) for path, source in sources.items() if reads.search(source)] == []


def test_a_side_effect_at_import_would_be_seen() -> None:
    done = run(SECOND_IMPORT, *EFFECTS)

    complaints = done.stderr.splitlines()[1:]
    assert len(complaints) == len(EFFECTS)
    assert all(expected in said for expected, said in zip(EFFECTS.values(), complaints, strict=True))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_cold_start_loads_only_known_packages(function: str) -> None:
    own = {"stint", "app", "__main__"}

    loaded = {name.partition(".")[0] for name in modules_of(function)} - set(sys.stdlib_module_names) - own

    assert {"pydantic", "botocore"} <= loaded
    assert {name for name in loaded if not name.startswith("_")} <= ALLOWED


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_cold_start_loads_no_more_modules_than_counted_here(function: str) -> None:
    modules = modules_of(function)

    assert len(modules) <= MODULES[function]
    assert "pydantic.v1" not in modules
    assert [name for name in modules if name.startswith("botocore")] == ["botocore"]  # which Powertools looks for


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_cold_start_builds_no_type_adapter_of_its_own(function: str) -> None:
    started = start(function)

    assert (started.complete, started.complaints) == ((), "")


@pytest.mark.parametrize(
    "function",
    ["agents", "turns", "responses", "knowledge", "october", "openai_agents", "protocols", "registry", "admin"],
)
def test_neither_a_cold_start_nor_an_unknown_path_builds_a_route(function: str) -> None:
    started = start(function)

    assert (started.built, started.complaints) == ([[], []], "")


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_cold_start_loads_no_model_adapter(function: str) -> None:
    clients = ("openai_compatible", "openai.chat_completions", "openai_responses.api")
    adapters = {f"stint.models.{name}" for name in (*clients, "bedrock.model", "scripted.model")}

    assert modules_of(function) & adapters == set()


def test_every_dependency_of_the_layer_is_imported_by_the_product() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[<>=]", each)[0] for each in project["dependencies"]}
    folders = ("layers/core", "layers/runtime", "functions")
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    imported = {
        match for path in sources for match in re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(), re.MULTILINE)
    }
    locked = (ROOT / "layers/dependencies/requirements.txt").read_text()

    assert {name for name in names if name.replace("-", "_") not in imported} == set()
    assert {name for name in names if f"\n{name}==" not in f"\n{locked}"} == set()
    assert not re.search(r"^(jsonschema|rpds-py|attrs)==", locked, re.MULTILINE)


def test_only_tokens_load_the_packages_of_the_authorizers_layer() -> None:
    importers = {
        path.relative_to(ROOT / "layers/core/stint").as_posix()
        for path in (ROOT / "layers/core/stint").rglob("*.py")
        if re.search(r"^ *(?:from|import) (?:jwt|cryptography)\b", path.read_text(), re.MULTILINE)
    }

    assert importers == {"oidc/tokens.py"}
    assert not {"jwt", "cryptography", "stint.oidc.tokens"} & modules_of("authorizer")


def test_every_dependency_of_the_extraction_layer_is_imported_when_it_is_used() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    names = {re.split(r"[<>=]", each)[0].removeprefix("python-") for each in groups["extraction"]}
    sources = {path: path.read_text() for path in (ROOT / "layers/core").rglob("*.py")}
    extends_a_library = ROOT / "layers/core/stint/documents/xlsx.py"
    imports = [
        match
        for path, source in sources.items()
        for match in re.findall(r"^( *)(?:from|import) (\w+)", source, re.MULTILINE)
        if path != extends_a_library
    ]

    assert not any(re.search(r"^from stint\.documents\.xlsx", source, re.MULTILINE) for source in sources.values())
    assert "openpyxl" in sources[extends_a_library]
    assert names == {"docx", "openpyxl", "pptx", "semchunk"}
    assert {name for _, name in imports} >= names - {"openpyxl"}
    assert [name for indent, name in imports if name in {*names, "lxml"} and not indent] == []


@pytest.mark.parametrize("function", ["agents", "turns"])
def test_agents_and_turns_load_nothing_of_responses(function: str) -> None:
    of_responses = [
        *("domain.openai", "domain.notifications", "store.responses", "store.conversations", "store.background"),
        *("store.response_leases", "store.idempotency"),
        *("services.background", "services.inference.chat", "services.conversations", "services.responses"),
        *(
            "apis.openai",
            "bootstrap.openai",
            "http.openai_dependencies",
            "store.response_logs",
            "store.signing_keys",
        ),
    ]

    loaded = {name for name in modules_of(function) for each in of_responses if name.startswith(f"stint.{each}")}

    assert loaded == set()


def test_the_authorizer_loads_the_types_of_no_api() -> None:
    apis = ("stint.domain.llama_stack", "stint.domain.openai", "stint.domain.notifications")

    assert [name for name in modules_of("authorizer") if name.startswith(apis)] == []


def test_the_sandbox_loads_the_standard_library_and_its_own_modules() -> None:
    loaded = {name.partition(".")[0] for name in modules_of("sandbox")} - set(sys.stdlib_module_names)

    own = {"app", "execution", "namespaces", "processes", "removal", "result", "__main__"}
    assert {name for name in loaded if not name.startswith("_")} <= own
