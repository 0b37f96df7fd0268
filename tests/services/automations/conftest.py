from collections.abc import Callable

import pytest
from infra.local.engine import Engine
from tests.services.automations.automation_fixture import AutomationFixture
from tests.store.conftest import Cloud

from stint.domain.api_keys import ApiKeyWithSecret

MakeAutomationFixture = Callable[[], AutomationFixture]


@pytest.fixture
def process(cloud: Cloud, tenant: str, engine: Engine) -> AutomationFixture:
    return AutomationFixture(cloud, tenant, engine.outputs["KeysTableName"])


@pytest.fixture
async def key(process: AutomationFixture) -> ApiKeyWithSecret:
    return await process.create_key()
