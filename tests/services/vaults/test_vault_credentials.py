"""Vaults and credentials: what is stored, shown and refused."""

import asyncio
import logging
from typing import Any

import pytest
from tests.servers.kms import KmsServer
from tests.servers.oauth import CLIENT_SECRET, OAuthServer
from tests.services.vaults.vault_fixture import NEW, OLD, REFRESH, VaultFixture, acting_for_user
from tests.store.conftest import Cloud

from stint.domain.errors import Conflict, InvalidRequest, NotFound, StoreUnavailable
from stint.domain.openai.vaults import UpdateCredential, UpdateVault
from stint.services.vaults.vault_secrets import NO_KEY
from stint.store import vaults as vault_store
from stint.store.items import decode

LATE = "2030-01-02T03:04:05+01:00"


async def list_ids(process: VaultFixture, *, newest_first: bool = True, after: str | None = None, **pairs: str) -> Any:
    page = await process.vaults.list(after=after, limit=2, newest_first=newest_first, metadata=pairs)
    return [each.id for each in page.data], page.has_more


async def test_no_secret_is_stored_shown_or_logged_in_clear(
    process: VaultFixture, cloud: Cloud, oauth: OAuthServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    vault = await process.create_vault(name="one")
    made = [await process.add_bearer(vault), await process.add_oauth(vault, oauth, "client_secret_post")]
    shown = [await process.vaults.get_credential(vault.id, each.id) for each in made]
    page = await process.vaults.list_credentials(vault.id, after=None, limit=9, newest_first=False, metadata={})

    everywhere = f"{cloud.items(process.tenant)} {[each.to_json() for each in [*made, *shown]]} {caplog.text}"
    assert [secret for secret in (OLD, REFRESH, CLIENT_SECRET) if secret in everywhere] == []
    assert (shown, list(page.data)) == (made, made)


async def test_an_encrypted_secret_that_is_copied_elsewhere_is_useless(process: VaultFixture, cloud: Cloud) -> None:
    theirs, ours = await process.create_vault(), await process.create_vault()
    await process.add_bearer(theirs, "token-of-others")
    await process.add_bearer(ours)
    decoded = map(decode, cloud.items(process.tenant))
    records = {item["pk"]: item for item in decoded if "sealed_access_token" in item}
    from_there, to_here = (next(records[pk] for pk in records if pk.endswith(vault.id)) for vault in (theirs, ours))
    cloud.write([to_here | {"sealed_access_token": from_there["sealed_access_token"]}])

    assert await process.sent(theirs) == "token-of-others"
    with pytest.raises(Exception, match="could not be decrypted"):
        await process.sent(ours)


async def test_nothing_is_created_without_a_key(cloud: Cloud, tenant: str) -> None:
    process = VaultFixture(cloud.store, tenant, credentials_key_arn="")

    with pytest.raises(InvalidRequest) as refused:
        await process.create_vault()
    with pytest.raises(InvalidRequest):
        await process.vaults.check_use(["vault_" + "0" * 32])

    assert (refused.value.message, refused.value.code) == (NO_KEY, "credentials_key_missing")
    assert cloud.items(tenant) == []


async def test_nothing_is_stored_if_a_secret_cannot_be_encrypted(
    process: VaultFixture, cloud: Cloud, kms: KmsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = await process.create_vault()
    before = cloud.items(process.tenant)
    monkeypatch.setattr(kms, "answer", lambda *_: (400, {"__type": "DisabledException"}))

    with pytest.raises(StoreUnavailable):
        await process.add_bearer(vault)

    assert cloud.items(process.tenant) == before


async def test_lists_have_pages_and_filters(process: VaultFixture) -> None:
    ids = [(await process.create_vault(metadata={"team": team})).id for team in ("a", "b", "a")]

    assert await list_ids(process) == ([ids[2], ids[1]], True)
    assert await list_ids(process, after=ids[1]) == ([ids[0]], False)
    assert await list_ids(process, newest_first=False, team="a") == ([ids[0], ids[2]], False)
    with pytest.raises(NotFound):
        await list_ids(process, after="vault_" + "0" * 32)


async def test_an_update_changes_only_the_fields_that_it_has(process: VaultFixture) -> None:
    vault = await process.create_vault(name=" one ", metadata={"a": "b"})

    renamed = await process.vaults.update(vault.id, UpdateVault(name="two"))
    cleared = await process.vaults.update(vault.id, UpdateVault(name=None, metadata={}))

    assert (vault.name, renamed.name, renamed.metadata) == ("one", "two", {"a": "b"})
    assert (cleared.name, cleared.metadata, await process.vaults.get(vault.id)) == (None, {}, cleared)


async def test_updates_at_the_same_time_keep_the_fields_of_each_other(
    process: VaultFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = await process.create_vault(name="a")
    get, others = vault_store.VaultStore.get, [UpdateVault(metadata={"team": "c"})]

    async def get_before_another_update(store: Any, tenant: str, vault_id: str) -> Any:
        found = await get(store, tenant, vault_id)
        if others:
            await process.vaults.update(vault_id, others.pop())
        return found

    monkeypatch.setattr(vault_store.VaultStore, "get", get_before_another_update)
    await process.vaults.update(vault.id, UpdateVault(name="b"))

    found = await process.vaults.get(vault.id)
    assert (found.name, found.metadata) == ("b", {"team": "c"})


async def test_a_rotation_replaces_secrets_of_the_same_type(process: VaultFixture, oauth: OAuthServer) -> None:
    vault = await process.create_vault()
    made = await process.add_oauth(vault, oauth, expires_at=LATE)

    async def rotate(**auth: Any) -> Any:
        body = UpdateCredential.model_validate({"auth": auth})
        return (await process.vaults.update_credential(vault.id, made.id, body)).to_json().decode()

    assert "2030-01-02T02:04:05Z" in made.to_json().decode()
    assert "2030-01-02T02:04:05Z" in await rotate(type="mcp_oauth", refresh={"scope": "read write"})
    rotated = await rotate(type="mcp_oauth", access_token=NEW)
    assert ('"expires_at":null' in rotated, '"scope":"read write"' in rotated) == (True, True)
    assert await process.sent(vault) == NEW
    with pytest.raises(InvalidRequest, match="cannot be changed"):
        await rotate(type="static_bearer", token="another-token")
    with pytest.raises(InvalidRequest, match="cannot be changed"):
        await rotate(type="mcp_oauth", refresh={"token_endpoint_auth": {"type": "client_secret_basic"}})


@pytest.mark.usefixtures("kms")
async def test_a_deleted_vault_takes_its_credentials_with_it(process: VaultFixture, cloud: Cloud) -> None:
    vault = await process.create_vault()
    credential = await process.add_bearer(vault)

    await process.vaults.delete(vault.id)

    assert [item["pk"]["S"].partition("#")[2] for item in cloud.items(process.tenant)] == ["vaults"]
    assert await process.sent(vault) is None
    for call in (process.vaults.get(vault.id), process.vaults.get_credential(vault.id, credential.id)):
        with pytest.raises(NotFound):
            await call
    with pytest.raises(NotFound):
        await process.add_bearer(vault)


async def test_the_worker_finishes_a_deletion_that_broke_off(process: VaultFixture, cloud: Cloud) -> None:
    vault = await process.create_vault()
    await process.add_bearer(vault)
    await cloud.store.vaults.mark_deleted(process.tenant, vault.id)
    await cloud.store.vaults.mark_deleted(process.tenant, vault.id)

    assert await process.sent(vault) is None
    assert await cloud.store.vaults.delete(process.tenant, vault.id)
    assert await cloud.store.vaults.delete(process.tenant, vault.id)

    assert [item.get("vault_count") for item in map(decode, cloud.items(process.tenant))] == [0]


async def test_limits_hold_for_requests_at_the_same_time(
    process: VaultFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault_store, "MOST_VAULTS", 3)
    monkeypatch.setattr(vault_store, "MOST_CREDENTIALS", 2)

    vaults = await asyncio.gather(*[process.create_vault() for _ in range(5)], return_exceptions=True)
    vault = next(each for each in vaults if not isinstance(each, BaseException))
    credentials = await asyncio.gather(*[process.add_bearer(vault) for _ in range(4)], return_exceptions=True)

    assert [type(each) for each in vaults].count(Conflict) == 2
    assert [type(each) for each in credentials].count(Conflict) == 2
    kept = next(each for each in credentials if not isinstance(each, BaseException))
    await process.vaults.delete_credential(vault.id, kept.id)
    with pytest.raises(NotFound):
        await process.vaults.delete_credential(vault.id, kept.id)
    await process.add_bearer(vault)


async def test_a_vault_of_an_end_user_is_hidden_from_others(process: VaultFixture) -> None:
    with acting_for_user("ann"):
        vault = await process.create_vault()
        await process.vaults.check_use([vault.id])
    open_to_all = await process.create_vault()

    with acting_for_user("bob"):
        assert await list_ids(process) == ([open_to_all.id], False)
        await process.vaults.check_use([open_to_all.id])
        with pytest.raises(NotFound):
            await process.vaults.get(vault.id)
        with pytest.raises(NotFound):
            await process.vaults.delete(vault.id)
        with pytest.raises(InvalidRequest, match=vault.id):
            await process.vaults.check_use([open_to_all.id, vault.id])
    assert len((await list_ids(process))[0]) == 2
    with pytest.raises(InvalidRequest, match=vault.id):
        await process.vaults.check_use([vault.id])


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/mcp", "http://10.0.0.1/", "https://u:p@example.com/", "ftp://a/"]
)
async def test_urls_pass_the_guard(process: VaultFixture, oauth: OAuthServer, url: str) -> None:
    vault = await process.create_vault()

    with pytest.raises(InvalidRequest) as refused:
        await process.add_bearer(vault, url=url)
    client = {"client_id": "c", "token_endpoint_auth": {"type": "none"}}
    with pytest.raises(InvalidRequest) as refused_endpoint:
        await process.add_oauth(vault, oauth, refresh=client | {"refresh_token": REFRESH, "token_endpoint": url})

    assert (refused.value.code, refused.value.param) == ("url_not_allowed", "auth.mcp_server_url")
    assert refused_endpoint.value.param == "auth.refresh.token_endpoint"
