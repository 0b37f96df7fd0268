import pytest
from tests.services.knowledge.knowledge_fixture import KnowledgeFixture
from tests.store.conftest import Cloud


@pytest.fixture
def knowledge(cloud: Cloud, tenant: str) -> KnowledgeFixture:
    return KnowledgeFixture(cloud, tenant)
