from collections.abc import Callable, Iterator

import pytest
from infra.local.engine import Engine
from tests.services.turn_fixture import Stage
from tests.services.worker_fixture import Office
from tests.store.conftest import Cloud, connect

from stint.domain.ids import new_id
from stint.models.port import ChatModel

MakeStage = Callable[..., Stage]
MakeOffice = Callable[..., Office]


@pytest.fixture(scope="session")
def engine_cloud(engine: Engine) -> Iterator[Cloud]:
    yield from connect(engine)


@pytest.fixture
def cloud(engine_cloud: Cloud) -> Cloud:
    """The local AWS engine, and what is asked of it."""
    engine_cloud.forget()
    return engine_cloud


@pytest.fixture
def own_cloud(engine: Engine) -> Iterator[Cloud]:
    """The same engine behind clients of the test's own, which it may disturb."""
    yield from connect(engine)


@pytest.fixture
def tenant() -> str:
    """A tenant of the test's own, in which the shared engine holds nothing yet."""
    return f"t{new_id()[-12:]}"


@pytest.fixture
def make_stage(cloud: Cloud, tenant: str) -> MakeStage:
    """Make a stage for a model; `lease` is in seconds, `history` in bytes."""

    def make(model: ChatModel, lease: float = 30, history: int = 4_000_000) -> Stage:
        return Stage(cloud.store, tenant, model, lease, history)

    return make


@pytest.fixture
def make_office(cloud: Cloud, tenant: str) -> MakeOffice:
    """Make an office for a model; `lease` is in seconds."""

    def make(model: ChatModel, lease: float = 30) -> Office:
        return Office(cloud, tenant, model, lease)

    return make
