"""Renewal of access tokens at a real token endpoint, also by several processes, and deaths in it."""

import asyncio
import gzip
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.servers.kms import KmsServer
from tests.servers.oauth import CLIENT, CLIENT_SECRET, OAuthServer, reply
from tests.servers.scripted_http import Reply
from tests.services.deaths import counting, die_at
from tests.services.vaults.vault_fixture import NEW, OLD, REFRESH, VaultFixture
from tests.store.conftest import Cloud

from stint.domain.errors import Conflict, ToolUnauthorized, ToolUnavailable
from stint.domain.known_secrets import known_secrets
from stint.domain.openai.vaults import UpdateCredential
from stint.net import secret_requests
from stint.services.vaults import token_refresh
from stint.store.vaults import REFRESH_TOKEN


def soon(seconds: float) -> str:
    return (datetime.fromtimestamp(time.time(), UTC) + timedelta(seconds=seconds)).isoformat()


async def refresh_token_of(process: VaultFixture, vault: Any, credential: Any) -> str:
    stored = await process.store.vaults.get_credential(process.tenant, vault.id, credential.id)
    return await process.vaults.secrets.decrypt(stored, REFRESH_TOKEN)


async def test_a_token_that_the_server_refuses_is_renewed_once(process: VaultFixture, oauth: OAuthServer) -> None:
    vault = await process.create_vault()
    credential = await process.add_oauth(vault, oauth)

    assert await process.sent(vault, refused=(OLD,)) == NEW
    assert await VaultFixture(process.store, process.tenant).sent(vault, refused=(OLD,)) == NEW

    shown = await process.vaults.get_credential(vault.id, credential.id)
    assert (len(oauth.forms), shown.expires_at and shown.expires_at > time.time() + 3000) == (1, True)
    assert await refresh_token_of(process, vault, credential) == oauth.valid == "refresh-token-1"
    assert {NEW, REFRESH, "refresh-token-1"} <= known_secrets()


async def test_a_token_that_ends_is_renewed_before_it_is_sent(process: VaultFixture, oauth: OAuthServer) -> None:
    vault = await process.create_vault()
    await process.add_oauth(vault, oauth, expires_at=soon(3600))
    assert await process.sent(vault) == OLD

    CLOCK.move(3600 - token_refresh.EARLY_SECONDS + 1)

    assert [await process.sent(vault), await process.sent(vault), len(oauth.forms)] == [NEW, NEW, 1]


@pytest.mark.parametrize("client", ["none", "client_secret_basic", "client_secret_post"])
async def test_the_client_logs_in_as_it_is_registered(process: VaultFixture, oauth: OAuthServer, client: str) -> None:
    vault = await process.create_vault()
    credential = await process.add_oauth(vault, oauth, client)
    more = {"type": "mcp_oauth", "refresh": {"scope": "read write"}}
    update = UpdateCredential.model_validate({"auth": more})
    await process.vaults.update_credential(vault.id, credential.id, update)

    await process.sent(vault, refused=(OLD,))

    form = {"grant_type": "refresh_token", "refresh_token": REFRESH, "scope": "read write"}
    public = {"client_id": CLIENT} if client != "client_secret_basic" else {}
    secret = {"client_secret": CLIENT_SECRET} if client == "client_secret_post" else {}
    assert oauth.forms == [form | public | secret]
    assert oauth.logins == ([(CLIENT, CLIENT_SECRET)] if client == "client_secret_basic" else [])


async def test_two_processes_spend_a_refresh_token_once(process: VaultFixture, oauth: OAuthServer) -> None:
    vault = await process.create_vault()
    await process.add_oauth(vault, oauth)
    others = [VaultFixture(process.store, process.tenant) for _ in range(3)]

    sent = await asyncio.gather(*[each.sent(vault, refused=(OLD,)) for each in (process, *others)])

    assert (sent, len(oauth.forms), oauth.valid) == ([NEW] * 4, 1, "refresh-token-1")


async def test_a_renewal_costs_two_writes(own_cloud: Cloud, tenant: str, kms: KmsServer, oauth: OAuthServer) -> None:
    process = VaultFixture(own_cloud.store, tenant)
    vault = await process.create_vault()
    await process.add_oauth(vault, oauth)
    own_cloud.forget()

    await process.sent(vault, refused=(OLD,))

    assert own_cloud.calls["UpdateItem"] == 2
    assert own_cloud.units["UpdateItem"] == 2
    assert sorted(kms.operations[-4:]) == ["Decrypt", "Encrypt", "Encrypt", "Encrypt"]


async def test_others_do_not_wait_forever(
    process: VaultFixture, oauth: OAuthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = await process.create_vault()
    credential = await process.add_oauth(vault, oauth)
    stored = await process.store.vaults.get_credential(process.tenant, vault.id, credential.id)
    assert await process.store.vaults.acquire_refresh(process.tenant, stored, "another", 60)
    monkeypatch.setattr(token_refresh, "WAIT_SECONDS", 0.3)

    with pytest.raises(ToolUnavailable, match="are being renewed"):
        await process.sent(vault, refused=(OLD,))
    rotation = UpdateCredential.model_validate({"auth": {"type": "mcp_oauth", "access_token": "a-rotated-token"}})
    with pytest.raises(Conflict):
        await process.vaults.update_credential(vault.id, credential.id, rotation)
    CLOCK.move(61)

    assert await process.sent(vault, refused=(OLD,)) == NEW


async def test_a_refused_refresh_token_is_not_sent_again(process: VaultFixture, oauth: OAuthServer) -> None:
    vault = await process.create_vault()
    credential = await process.add_oauth(vault, oauth)
    oauth.valid = "another-refresh-token"

    for _ in range(2):
        with pytest.raises(ToolUnauthorized) as refused:
            await process.sent(vault, refused=(OLD,))
    assert (len(oauth.forms), "invalid_grant" in refused.value.message) == (1, True)
    assert [secret for secret in (OLD, REFRESH) if secret in refused.value.message] == []

    access = UpdateCredential.model_validate({"auth": {"type": "mcp_oauth", "access_token": "a-rotated-token"}})
    await process.vaults.update_credential(vault.id, credential.id, access)
    with pytest.raises(ToolUnauthorized):
        await process.sent(vault, refused=("a-rotated-token",))
    assert len(oauth.forms) == 1

    rotation = {"type": "mcp_oauth", "refresh": {"refresh_token": oauth.valid}}
    update = UpdateCredential.model_validate({"auth": rotation})
    await process.vaults.update_credential(vault.id, credential.id, update)
    assert await process.sent(vault, refused=(OLD, "a-rotated-token")) == NEW


ANSWERS = {
    "a page of a gateway": Reply((b"<html>",), 502),
    "a redirect": Reply((), 307, {"location": "http://127.0.0.1:9/token"}),
    "no JSON": Reply((b"right-token",)),
    "no token": reply(200, {"token_type": "Bearer"}),
    "a short token": reply(200, {"access_token": "short"}),
    "a token of two lines": reply(200, {"access_token": "right-token\r\nx: y"}),
    "another type": reply(200, {"access_token": "right-token", "token_type": "mac"}),
    "an unknown error": reply(400, {"error": REFRESH}),
    "a dropped connection": Reply((), 0),
    "a long answer": Reply((b" " * 70_000,)),
    "an answer that grows": Reply((gzip.compress(bytes(50_000_000)),), 200, {"content-encoding": "gzip"}),
}


@pytest.mark.parametrize("answer", ANSWERS)
async def test_an_endpoint_that_fails_changes_nothing(process: VaultFixture, oauth: OAuthServer, answer: str) -> None:
    vault = await process.create_vault()
    await process.add_oauth(vault, oauth, expires_at=soon(3600))
    oauth.server.script(ANSWERS[answer], ANSWERS[answer])

    with pytest.raises(ToolUnavailable) as failed:
        await process.sent(vault, refused=(OLD,))
    CLOCK.move(3600 - token_refresh.EARLY_SECONDS + 1)
    sent = await process.sent(vault)  # it is due, but still valid

    assert [secret for secret in (OLD, REFRESH, NEW, oauth.url) if secret in failed.value.message] == []
    assert sent == OLD
    assert await process.sent(vault, refused=(OLD,)) == NEW


async def test_an_endpoint_that_answers_byte_by_byte_is_given_up(
    process: VaultFixture, oauth: OAuthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secret_requests, "SECONDS", 0.3)
    vault = await process.create_vault()
    await process.add_oauth(vault, oauth)
    oauth.server.script(Reply((b" ", 0.02) * 500))

    with pytest.raises(ToolUnavailable, match=r"did not answer within 0\.3 s"):
        await process.sent(vault, refused=(OLD,))
    assert await process.sent(vault, refused=(OLD,)) == NEW


async def test_a_refresh_token_is_not_spent_if_kms_does_not_encrypt(
    process: VaultFixture, oauth: OAuthServer, kms: KmsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = await process.create_vault()
    await process.add_oauth(vault, oauth)
    answer = kms.answer

    def decrypt_only(operation: str, sent: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return answer(operation, sent) if operation == "Decrypt" else (400, {"__type": "AccessDeniedException"})

    monkeypatch.setattr(kms, "answer", decrypt_only)

    with pytest.raises(ToolUnavailable):
        await process.sent(vault, refused=(OLD,))

    assert oauth.forms == []


async def test_a_cancelled_turn_still_stores_new_tokens(process: VaultFixture, oauth: OAuthServer) -> None:
    vault = await process.create_vault()
    credential = await process.add_oauth(vault, oauth)
    asked, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        asked.set()
        go_on.wait(30)

    oauth.on_request = wait

    turn = asyncio.create_task(process.sent(vault, refused=(OLD,)))
    await asyncio.to_thread(asked.wait, 30)
    turn.cancel()
    go_on.set()
    await asyncio.gather(turn, return_exceptions=True)
    await asyncio.gather(*process.binder.refresher.running)

    assert await refresh_token_of(process, vault, credential) == oauth.valid
    assert (await process.sent(vault, refused=(OLD,)), len(oauth.forms)) == (NEW, 1)


async def test_a_deleted_credential_is_not_created_again(process: VaultFixture, oauth: OAuthServer) -> None:
    vault = await process.create_vault()
    credential = await process.add_oauth(vault, oauth)
    loop = asyncio.get_running_loop()

    def delete() -> None:
        deletion = process.vaults.delete_credential(vault.id, credential.id)
        asyncio.run_coroutine_threadsafe(deletion, loop).result(30)

    oauth.on_request = delete

    with pytest.raises(ToolUnavailable, match="was deleted"):
        await process.sent(vault, refused=(OLD,))

    page = await process.vaults.list_credentials(vault.id, after=None, limit=5, newest_first=True, metadata={})
    assert list(page.data) == []


async def test_the_owner_of_a_lapsed_lease_does_not_overwrite(process: VaultFixture, oauth: OAuthServer) -> None:
    vault = await process.create_vault()
    credential = await process.add_oauth(vault, oauth)
    store, tenant = process.store.vaults, process.tenant
    stored = await store.get_credential(tenant, vault.id, credential.id)
    assert await store.acquire_refresh(tenant, stored, "slow", 1)
    CLOCK.move(2)

    assert await process.sent(vault, refused=(OLD,)) == NEW

    assert not await store.store_tokens(tenant, stored, "slow")
    await store.release_refresh(tenant, stored, "slow", "invalid_grant")
    assert await process.sent(vault, refused=(OLD,)) == NEW


async def test_deaths_lose_at_most_a_token_that_the_server_spends(
    own_cloud: Cloud, tenant: str, kms: KmsServer, oauth: OAuthServer
) -> None:
    """A process dies at each of its calls of the table. The next one goes on, or says that the token is spent."""
    first = VaultFixture(own_cloud.store, tenant)
    vault = await first.create_vault()
    await first.add_oauth(vault, oauth)
    with counting(own_cloud) as calls:
        await first.sent(vault, refused=(OLD,))
    deaths = [(name, calls[:place].count(name)) for place, name in enumerate(calls)]
    outcomes = []
    for operation, number in deaths:
        oauth.valid, oauth.forms = REFRESH, []
        process = VaultFixture(own_cloud.store, tenant)
        vault = await process.create_vault()
        await process.add_oauth(vault, oauth)
        await die_at(own_cloud, operation, number, partial(process.sent, vault, refused=(OLD,)))
        spent = oauth.valid != REFRESH
        CLOCK.move(token_refresh.LEASE_SECONDS + 1)
        try:
            outcomes.append((operation, spent, await VaultFixture(own_cloud.store, tenant).sent(vault, refused=(OLD,))))
        except ToolUnauthorized:
            outcomes.append((operation, spent, None))

    lost = [(operation, spent) for operation, spent, token in outcomes if token is None]
    # Only the write of the new tokens comes after the request.
    assert lost == [("UpdateItem", True)]
    assert len(outcomes) >= 4
