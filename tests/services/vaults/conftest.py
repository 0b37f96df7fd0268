from collections.abc import Iterator

import pytest
from tests.servers.kms import KmsServer
from tests.servers.oauth import OAuthServer
from tests.services.vaults.vault_fixture import VaultFixture
from tests.store.conftest import Cloud


@pytest.fixture
def oauth() -> Iterator[OAuthServer]:
    with OAuthServer() as server:
        yield server


@pytest.fixture
def process(cloud: Cloud, tenant: str, kms: KmsServer) -> VaultFixture:
    return VaultFixture(cloud.store, tenant)
