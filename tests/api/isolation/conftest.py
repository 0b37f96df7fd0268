from collections.abc import Iterator

import pytest
from infra.local.engine import Engine
from tests.api.isolation.warm_process import WarmProcess


@pytest.fixture(scope="module")
def warm_process(engine: Engine) -> Iterator[WarmProcess]:
    """Yield a process that serves any number of tenants. Its clients read the environment when they are first used."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in engine.environment().items():
            patch.setenv(name, value)
        process = WarmProcess(engine)
        with process.served:
            yield process
