from collections.abc import Callable, Iterator

import pytest
from infra.local.engine import Engine
from tests.services.turn_fixture import TurnFixture
from tests.services.worker_fixture import WorkerFixture
from tests.store.conftest import Cloud, connect

from stint.domain.ids import new_id
from stint.models.port import ChatModel
from stint.store.keys import KeyLayout
from stint.tools.knowledge.file_search import KnowledgeSearch

MakeTurnFixture = Callable[..., TurnFixture]
MakeWorkerFixture = Callable[..., WorkerFixture]


@pytest.fixture(scope="session")
def engine_cloud(engine: Engine) -> Iterator[Cloud]:
    yield from connect(engine)


@pytest.fixture
def cloud(engine_cloud: Cloud) -> Cloud:
    """Return a store in the local AWS engine, with counters of its requests."""
    engine_cloud.forget()
    return engine_cloud


@pytest.fixture
def own_cloud(engine: Engine) -> Iterator[Cloud]:
    """Yield a store in the same engine with the test's own clients, which it may break."""
    yield from connect(engine)


@pytest.fixture
def tenant() -> str:
    """Return a new tenant, for which the shared engine has no data yet."""
    return f"t{new_id()[-12:]}"


@pytest.fixture
def make_turn_fixture(cloud: Cloud, tenant: str) -> MakeTurnFixture:
    """Return a function that creates a TurnFixture for a model; `lease` is in seconds, `history` in bytes."""

    def make(model: ChatModel, lease: float = 30, history: int = 4_000_000) -> TurnFixture:
        return TurnFixture(cloud.store, tenant, model, lease, history)

    return make


@pytest.fixture
def make_worker_fixture(cloud: Cloud, tenant: str) -> MakeWorkerFixture:
    """Return a function that creates a WorkerFixture for a model; `lease` is in seconds."""

    def make(
        model: ChatModel,
        lease: float = 30,
        knowledge: KnowledgeSearch | None = None,
        key_layout: KeyLayout = "spread",
    ) -> WorkerFixture:
        return WorkerFixture(cloud, tenant, model, lease, knowledge=knowledge, key_layout=key_layout)

    return make
