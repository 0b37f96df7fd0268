"""Which credential a call of an MCP server gets."""

from typing import Any

import pytest
from tests.services.vaults.vault_fixture import NEW, OLD, SERVER, VaultFixture, acting_for_user
from tests.store.conftest import Cloud

from stint.domain.errors import InvalidRequest, ToolUnauthorized
from stint.domain.known_secrets import known_secrets
from stint.store.owners import hash_user


async def test_the_only_credential_with_the_url_of_the_server_is_sent(process: VaultFixture) -> None:
    vault, other = await process.create_vault(), await process.create_vault()
    await process.add_bearer(vault, "token-of-another-server", "http://127.0.0.1:9/mcp/other")
    await process.add_bearer(other)

    assert await process.sent(vault, other) == OLD
    assert await process.sent(vault) is None
    assert OLD in known_secrets()


@pytest.mark.parametrize(
    ("url", "is_same"),
    [
        ("http://127.0.0.1:9/mcp", True),
        ("HTTP://127.0.0.1:9/a/../mcp", True),
        ("http://127.0.0.1:9/mcp#part", True),
        ("http://127.0.0.1:9/mcp/", False),
        ("http://127.0.0.1:9/mcp?x=1", False),
        ("http://127.0.0.1:9/MCP", False),
        ("http://127.0.0.1:9/", False),
        ("http://127.0.0.1/mcp", False),
        ("https://127.0.0.1:9/mcp", False),
        ("http://127.0.0.1.example:9/mcp", False),
        ("http://127.0.0.1:90/mcp", False),
    ],
)
async def test_a_credential_goes_to_its_own_address_alone(process: VaultFixture, url: str, is_same: bool) -> None:
    vault = await process.create_vault()
    await process.add_bearer(vault)

    assert await process.sent(vault, mcp_endpoint=url) == (OLD if is_same else None)


async def test_one_of_several_credentials_must_be_chosen(process: VaultFixture) -> None:
    vault, other = await process.create_vault(), await process.create_vault()
    first, second = await process.add_bearer(vault), await process.add_bearer(other, NEW)
    elsewhere = await process.add_bearer(other, "token-of-another-server", "http://127.0.0.1:9/other")

    async def refusal(*vaults: Any, **fields: Any) -> str:
        with pytest.raises(InvalidRequest) as refused:
            await process.sent(*vaults, **fields)
        return refused.value.code

    assert await refusal(vault, other) == "credential_ambiguous"
    assert await process.sent(vault, other, credential_id=second.id) == NEW
    assert await refusal(vault, credential_id=second.id) == "credential_not_found"
    assert await refusal(credential_id=first.id) == "credential_not_found"
    assert await refusal(vault, other, credential_id=elsewhere.id) == "credential_mismatch"


@pytest.mark.parametrize("config", [{"authorization": "inline-token"}, {"headers": {"AUTHORIZATION": "inline"}}])
async def test_an_authorization_of_the_server_is_the_only_one(process: VaultFixture, config: Any) -> None:
    vault = await process.create_vault()
    credential = await process.add_bearer(vault)

    assert await process.sent(vault, config=config) == config.get("authorization")
    with pytest.raises(InvalidRequest, match="Remove one of them"):
        await process.sent(vault, config=config, credential_id=credential.id)


async def test_a_vault_of_an_end_user_serves_no_other_session(process: VaultFixture) -> None:
    with acting_for_user("ann"):
        vault = await process.create_vault()
        await process.add_bearer(vault)

    sent = [await process.sent(vault, owner=hash_user(user) if user else "") for user in ("ann", "bob", "")]

    assert sent == [OLD, None, None]


async def test_a_deleted_credential_is_not_sent_any_more(process: VaultFixture) -> None:
    vault = await process.create_vault()
    credential = await process.add_bearer(vault)
    assert await process.sent(vault) == OLD

    await process.vaults.delete_credential(vault.id, credential.id)

    assert await process.sent(vault) is None


async def test_a_refused_bearer_is_named_without_its_token(process: VaultFixture) -> None:
    vault = await process.create_vault()
    credential = await process.add_bearer(vault)

    with pytest.raises(ToolUnauthorized) as refused:
        await process.sent(vault, refused=(OLD,))

    assert credential.id in refused.value.message
    assert OLD not in refused.value.message


async def test_a_host_that_is_no_longer_allowed_gets_no_credential(process: VaultFixture) -> None:
    vault = await process.create_vault()
    await process.add_bearer(vault)
    other = VaultFixture(process.store, process.tenant, allowed_hosts="")

    with pytest.raises(InvalidRequest) as refused:
        await other.sent(vault)

    assert refused.value.code == "url_not_allowed"
    assert SERVER not in refused.value.message


async def test_a_call_reads_two_units_per_vault(process: VaultFixture, cloud: Cloud) -> None:
    vault = await process.create_vault()
    cloud.forget()
    await process.add_bearer(vault)
    created = cloud.units.copy()
    cloud.forget()

    await process.sent(vault)

    assert dict(cloud.calls) == {"BatchGetItem": 1, "Query": 1}
    assert cloud.units["Query"] == 1
    assert created["TransactWriteItems"] == 4
