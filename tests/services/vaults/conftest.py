from collections.abc import Iterator

import pytest
from tests.servers.kms import KmsServer
from tests.servers.oauth import OAuthServer
from tests.services.vaults.vault_fixture import VaultFixture
from tests.store.conftest import Cloud


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Iterator[KmsServer]:
    with KmsServer() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", server.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        yield server


@pytest.fixture
def oauth() -> Iterator[OAuthServer]:
    with OAuthServer() as server:
        yield server


@pytest.fixture
def process(cloud: Cloud, tenant: str, kms: KmsServer) -> VaultFixture:
    return VaultFixture(cloud.store, tenant)
