from collections.abc import Callable

import pytest
from infra.local.engine import Engine
from tests.services.webhooks.webhook_fixture import WebhookFixture
from tests.store.conftest import Cloud

MakeWebhookFixture = Callable[..., WebhookFixture]


@pytest.fixture
def make_webhook_fixture(
    cloud: Cloud, tenant: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> MakeWebhookFixture:
    """Return a function that creates a WebhookFixture; `allowed` are hosts that URLs may reach inside."""
    for name, value in engine.environment().items():
        if name.startswith(("AWS_ACCESS", "AWS_SECRET")) or name.endswith("_KMS"):
            monkeypatch.setenv(name, value)

    def make(**options: str) -> WebhookFixture:
        return WebhookFixture(cloud, tenant, engine, **options)

    return make


@pytest.fixture
def webhooks(make_webhook_fixture: MakeWebhookFixture) -> WebhookFixture:
    return make_webhook_fixture()
