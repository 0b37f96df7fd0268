"""The stacks that the tests share. `stint` was created from the base build and updated; `stint-test` is new.

Both are deployed by the program and the SAM CLI of `make deploy`. Tests of a deleted stack are run last.
"""

import io
import sys
import venv
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from infra.local.engine import ROOT
from infra.local.intrinsics import STACK
from tests.deploy.account import Account, DeploymentEngine, Resource
from tests.deploy.callers import create_key
from tests.deploy.contents import Contents, store_data
from tests.deploy.project import make_base_project, make_project
from tests.samples.conftest import build  # noqa: F401 - a fixture

SECOND = f"{STACK}-test"
BOTH = "VectorIndex=packed ScriptedModels=true DefaultModel=scripted/demo EmbeddingModel=hashed/words-384"
TOOL = "get-boiling-point"
PARAMETERS = f"{BOTH} UsageSums=true ToolFunctionArns=arn:aws:lambda:us-east-1:000000000000:function:{TOOL}"
SECOND_PARAMETERS = f"{BOTH} ApiLogRole=existing TenantIsolation=iam"


@dataclass(frozen=True)
class Update:
    """The stack before an update and after it, and a key that was created before it."""

    resources: dict[str, Resource]
    contents: Contents
    key: str
    updated_resources: dict[str, Resource]
    updated_contents: Contents


@dataclass(frozen=True)
class Removal:
    """The resources that the deletions of a stack and its nested stack of data kept. `contents` are those before it."""

    contents: Contents
    kept: set[str]
    data_status: str
    kept_of_data: set[str]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: "removed" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with DeploymentEngine() as engine:
        account = Account(engine, tmp_path_factory.mktemp("home"))
        yield account
        account.close()


@pytest.fixture(scope="session")
def project(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    return make_project(tmp_path_factory.mktemp("project"), build)


@pytest.fixture(scope="session")
def stacks(account: Account, project: Path, tmp_path_factory: pytest.TempPathFactory) -> Update:
    """Create a stack of the base build and store data in it. Then update it, and create the second one."""
    base = make_base_project(tmp_path_factory.mktemp("base") / "project")
    create_tool(account)
    account.deploy(STACK, base, PARAMETERS)  # it also creates the bucket for uploads, which has one name per account
    key = create_key(account, STACK)
    before, contents = account.resources(STACK), store_data(account, STACK)
    with ThreadPoolExecutor() as threads:
        second = threads.submit(account.deploy, SECOND, project, SECOND_PARAMETERS)
        account.deploy(STACK, project, PARAMETERS)
        second.result()
    return Update(before, contents, key, account.resources(STACK), Contents.of(account, STACK))


@pytest.fixture(scope="session")
def second(stacks: Update) -> str:
    """Return the name of the second stack."""
    return SECOND


@pytest.fixture(scope="session")
def removed(stacks: Update, account: Account) -> Removal:
    """Delete the first stack, and then its nested stack of data."""
    contents = Contents.of(account, STACK)
    data = account.resources(STACK)["Data"].physical_id
    stack_id = account.stack_id(STACK)
    with pytest.raises(AssertionError, match="not a valid S3 url"):  # engine_gaps.SAM_DELETE
        account.sam_delete(STACK)
    account.delete(STACK)
    kept = account.skipped(stack_id)
    status = account.status(data)
    account.delete(data)
    return Removal(contents, kept, status, account.skipped(data))


@pytest.fixture(scope="session")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python with only the standard library."""
    folder = tmp_path_factory.mktemp("empty")
    venv.EnvBuilder(symlinks=True).create(folder)
    return folder / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"


def create_tool(account: Account) -> None:
    """Create the function that an event calls as a tool."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.write(ROOT / "docs/examples/tools/boiling_point/app.py", "app.py")
    runtime = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    role = "arn:aws:iam::000000000000:role/tool"
    code = {"ZipFile": archive.getvalue()}
    account.functions.create_function(FunctionName=TOOL, Runtime=runtime, Handler="app.handler", Role=role, Code=code)
