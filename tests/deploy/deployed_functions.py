"""The functions of a stack as they were deployed, for the local Runtime API: nothing is taken from the build.

The engine ignores the wrapper of streaming functions (`engine_gaps.py`).
"""

import contextlib
import io
import zipfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

from infra.local.cloud import CONCURRENCY, base_url
from infra.local.front import Front
from infra.local.function_process import FunctionSpec
from infra.local.functions import Functions
from infra.local.intrinsics import STACK
from infra.local.server import listen, serving
from infra.local.system import System
from tests.deploy.account import Account

FUNCTION = "AWS::Lambda::Function"
WRAPPER = "AWS_LAMBDA_EXEC_WRAPPER"


def deployed_functions(account: Account, stack: str, folder: Path, python: Path) -> Iterator[FunctionSpec]:
    """Yield the functions of a stack. Their code and layers are unpacked into a new folder; `python` runs them."""
    services = account.engine.environment() | {"AWS_ENDPOINT_URL": account.engine.endpoint}
    for name in function_names(account, stack):
        found = account.functions.get_function(FunctionName=name)
        configuration = found["Configuration"]
        environment = configuration["Environment"]["Variables"] | services
        yield FunctionSpec(
            name=name,
            handler=configuration["Handler"],
            code=unpack(found["Code"]["Location"], folder / name),
            layers=tuple(layer_folder(account, each["Arn"], folder) for each in configuration["Layers"]),
            wrapper=environment.pop(WRAPPER, None),
            environment=environment,
            timeout=float(configuration["Timeout"]),
            memory=configuration["MemorySize"],
            python=python,
        )


def function_names(account: Account, stack: str) -> list[str]:
    return [each.physical_id for each in account.resources(stack).values() if each.type == FUNCTION]


def layer_folder(account: Account, arn: str, folder: Path) -> Path:
    _, _, name, version = arn.rsplit(":", 3)
    place = folder / "layers" / f"{name}-{version}"
    if place.exists():
        return place
    return unpack(account.functions.get_layer_version_by_arn(Arn=arn)["Content"]["Location"], place)


def unpack(url: str, folder: Path) -> Path:
    """Unpack a deployed archive as Lambda does, with the permissions in it."""
    with build_opener(ProxyHandler({})).open(url, timeout=60) as answer:
        archive = zipfile.ZipFile(io.BytesIO(answer.read()))
    archive.extractall(folder)
    for entry in archive.infolist():
        if mode := entry.external_attr >> 16:
            (folder / entry.filename).chmod(mode)
    return folder


def deployed_system(account: Account, stack: str) -> System:
    """Return the routes of a deployed API. The name of the stack must be that of the local cloud."""
    data = account.resources(stack)["Data"].physical_id
    template: dict[str, Any] = account.processed_template(stack)
    return System(
        Path("deployed"),
        template,
        region=account.engine.region,
        parameters=account.parameters(stack),
        outputs=account.outputs(data),
    )


@contextlib.asynccontextmanager
async def serving_deployed(account: Account, folder: Path, python: Path) -> AsyncIterator[str]:
    """Serve the API of the first stack, and yield its URL."""
    log: list[tuple[str, str]] = []
    note = lambda subject, line: log.append((subject, line))  # noqa: E731
    specs = deployed_functions(account, STACK, folder, python)
    functions = Functions(specs, concurrency=CONCURRENCY, log=note)
    with contextlib.closing(listen()) as listener:
        try:
            async with serving(Front(deployed_system(account, STACK), functions, note), listener):
                yield base_url(listener)
        finally:
            await functions.stop()
