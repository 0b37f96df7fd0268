import asyncio
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest
from infra.local.functions import Functions, FunctionSpec
from infra.local.opt import layer_folders
from tests.runtime.harness import APPS, CORE, RUNTIME_LAYER, Gate, Service, Start


@pytest.fixture
async def gate() -> AsyncIterator[Gate]:
    found = Gate()
    server = await asyncio.start_server(found.accept, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    yield found
    found.close()
    server.close()


@pytest.fixture
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Start]:
    """Yield a function that starts a service: streaming by default, with `wrapper=None` on the managed runtime."""
    started: list[Service] = []

    async def start(
        handler: str = "streams.app",
        *,
        wrapper: str | None = "/opt/stint-runtime",
        concurrency: int = 2,
        timeout: float = 20,
        environment: Mapping[str, str] | None = None,
        code: Path = APPS,
        layers: tuple[Path, ...] = (RUNTIME_LAYER,),
        retry_delay: float = 0.0,
        at_once: int = 1,
        throttle: bool = True,
        reloads: bool = False,
    ) -> Service:
        lines: list[str] = []
        spec = FunctionSpec(
            name="f",
            handler=handler,
            code=code,
            layers=layer_folders((*layers, CORE), tmp_path_factory.mktemp("links")),
            environment=environment or {},
            timeout=timeout,
            memory=256,
            wrapper=wrapper,
            python=Path(sys.executable),
            at_once=at_once,
            reloads=reloads,
        )
        functions = Functions(
            [spec],
            concurrency=concurrency,
            log=lambda _, line: lines.append(line),
            throttle=throttle,
            retry_delay=retry_delay,
        )
        started.append(Service(functions, lines))
        return started[-1]

    yield start
    for one in started:
        await one.functions.stop()


@pytest.fixture
def code(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that creates a function's folder with one module, `app.py`."""

    def make(source: str) -> Path:
        folder = tmp_path / "code"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "app.py").write_text(source)
        return folder

    return make
