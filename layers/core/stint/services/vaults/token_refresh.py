"""Renewal of access tokens with refresh tokens (RFC 6749, section 6), once for all processes.

Many servers accept a refresh token once, and answer with its successor. So one process at a time renews the tokens of a
credential, under a lease in its record, and stores the answer before anything uses it. The others wait, and then read
the record again. The steps, and what the death of a process after each one leaves:

    step                                     left after it             the next process
    1. take the lease                        a lease for LEASE_SECONDS waits for its end, and begins at 1
    2. decrypt the secrets, try to encrypt   the same                  the same
    3. send the refresh token                a spent token, if the     is refused (`invalid_grant`): the credential
                                             server accepts it once    must be rotated
    4. encrypt and store the new tokens      the new tokens            uses them

Only between 3 and 4 is anything lost, and only with a server that rotates. The window is as small as it can be: step 2
proves that KMS encrypts for this function, and step 1 that the table can be written; both calls of step 4 are repeated.
The request itself is never repeated, because an answer that did not arrive may have been the only one.

A refused refresh token is noted in the record, so that no turn sends it again. Other failures end the lease, and the
access token is used as it is while it is valid.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TypeVar

from stint.dataclasses import dataclass, field, replace
from stint.domain.errors import StoreUnavailable, ToolUnauthorized, ToolUnavailable
from stint.domain.ids import new_id
from stint.domain.known_secrets import remember
from stint.domain.openai.vaults import TokenRefresh
from stint.net.guard import Guard
from stint.net.secret_requests import EndpointFailed
from stint.net.token_requests import IssuedTokens, TokensRefused, basic_login, request_tokens
from stint.services.vaults.vault_secrets import VaultSecrets
from stint.store.vaults import ACCESS_TOKEN, CLIENT_SECRET, REFRESH_TOKEN, StoredCredential, VaultStore

T = TypeVar("T")

logger = logging.getLogger(__name__)

EARLY_SECONDS = 60.0
"""Seconds before its end at which an access token is renewed."""
LEASE_SECONDS = 60.0
"""Seconds of the lease: more than the request (10 s) and the calls of KMS and of the table around it take."""
WAIT_SECONDS = 15.0
"""Seconds for which a process waits for another one that renews the tokens."""
PAUSE = 0.25
"""Seconds between two looks at the record while another process renews the tokens."""
ATTEMPTS = 5
"""Attempts to encrypt and to store new tokens."""


@dataclass(frozen=True, slots=True)
class TokenRefresher:
    """Renews the access tokens of a tenant's credentials."""

    tenant: str
    store: VaultStore
    secrets: VaultSecrets
    guard: Guard
    running: set[asyncio.Task[StoredCredential]] = field(default_factory=set)

    def is_due(self, stored: StoredCredential) -> bool:
        """Return whether an access token ends now, and can be renewed."""
        end = stored.credential.expires_at
        return end is not None and stored.credential.refresh is not None and end - EARLY_SECONDS <= time.time()

    async def renew(self, stored: StoredCredential) -> StoredCredential:
        """Return a credential with another access token than the one that was read, by this process or another one.

        Raises:
            ToolUnauthorized: the server refuses the refresh token, or there is none.
            ToolUnavailable: the tokens could not be renewed now.
            NotFound: the credential was deleted.
            StoreUnavailable: the table or KMS failed.
        """
        holder, revision, found = new_id(), stored.revision, stored
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            refuse_spent(found)
            if await self.store.acquire_refresh(self.tenant, found, holder, LEASE_SECONDS):
                # A task of its own: a cancelled turn must not lose tokens that the server has issued.
                task = asyncio.create_task(self._renew_as(found, holder))
                self.running.add(task)
                task.add_done_callback(self._forget)
                return await asyncio.shield(task)
            found = await self._read(found)
            if found.revision != revision:
                return found
            if time.monotonic() >= deadline:
                raise ToolUnavailable(f"The tokens of {name_of(found)} are being renewed. Try again in a minute.")
            await asyncio.sleep(PAUSE)

    def _forget(self, task: asyncio.Task[StoredCredential]) -> None:
        self.running.discard(task)
        if not task.cancelled():
            task.exception()  # asyncio reports an error that nobody has waited for

    async def _read(self, stored: StoredCredential) -> StoredCredential:
        return await self.store.get_credential(self.tenant, stored.credential.vault_id, stored.credential.id)

    async def _renew_as(self, found: StoredCredential, holder: str) -> StoredCredential:
        """Renew tokens as the holder of the lease."""
        refused, stored = "", False
        try:
            tokens = await self._request(found)
        except TokensRefused as error:
            refused = error.code if error.code == "invalid_grant" else ""
            raise ToolUnauthorized(
                f"The token endpoint of {name_of(found)} refuses to renew its tokens ({error.code}). {ROTATE}"
            ) from None
        except EndpointFailed as error:
            raise ToolUnavailable(
                f"The tokens of {name_of(found)} could not be renewed: the token endpoint failed: {error}."
            ) from None
        else:
            changed = await self._store(found, tokens, holder)
            stored = True
            return changed
        finally:
            if not stored:  # if this fails, the lease ends by itself
                with suppress(StoreUnavailable):
                    await self.store.release_refresh(self.tenant, found, holder, refused)

    async def _request(self, found: StoredCredential) -> IssuedTokens:
        refresh = found.credential.refresh
        if refresh is None or REFRESH_TOKEN not in found.sealed:
            raise ToolUnauthorized(f"The access token of {name_of(found)} has ended. {ROTATE}")
        token = await self.secrets.decrypt(found, REFRESH_TOKEN)
        secret = await self.secrets.decrypt(found, CLIENT_SECRET) if CLIENT_SECRET in found.sealed else ""
        await self.secrets.encrypt(found.credential, REFRESH_TOKEN, token)
        login = None
        if refresh.token_endpoint_auth.type == "client_secret_basic":
            login = basic_login(refresh.client_id, secret)
            remember({login.removeprefix("Basic ")})
        return await request_tokens(self.guard, refresh.token_endpoint, form_of(refresh, token, secret), login)

    async def _store(self, found: StoredCredential, tokens: IssuedTokens, holder: str) -> StoredCredential:
        """Store new tokens, and return the credential with them."""
        remember({tokens.access_token, tokens.refresh_token or tokens.access_token})
        sealed = dict(found.sealed)

        async def seal(name: str, secret: str) -> None:
            sealed[name] = await self.secrets.encrypt(found.credential, name, secret)

        await repeat(lambda: seal(ACCESS_TOKEN, tokens.access_token))
        if (token := tokens.refresh_token) is not None:
            await repeat(lambda: seal(REFRESH_TOKEN, token))
        end = None if tokens.lifetime is None else datetime.fromtimestamp(int(time.time() + tokens.lifetime), UTC)
        auth = found.credential.auth.model_copy(update={"expires_at": end})
        credential = found.credential.model_copy(update={"auth": auth, "updated_at": int(time.time())})
        changed = replace(found, credential=credential, sealed=sealed)
        if not await repeat(lambda: self.store.store_tokens(self.tenant, changed, holder)):
            # Another process has taken the lease after its end, or the credential was deleted.
            return await self._read(found)
        logger.info("The tokens of a credential were renewed", extra={"credential_id": credential.id})
        return replace(changed, revision=found.revision + 1)


ROTATE = "Send new tokens with POST /v1/vaults/{vault_id}/credentials/{credential_id}."


def refuse_spent(stored: StoredCredential) -> None:
    """Raise ToolUnauthorized for a refresh token that the server has refused before."""
    if stored.refused:
        raise ToolUnauthorized(
            f"The token endpoint of {name_of(stored)} has refused its refresh token ({stored.refused}). {ROTATE}"
        )


def name_of(stored: StoredCredential) -> str:
    """Return the name of a credential in errors."""
    return f"the credential {stored.credential.id}"


def form_of(refresh: TokenRefresh, token: str, secret: str) -> dict[str, str]:
    """Return the form of a request. A client without a Basic login sends its id in it."""
    form = {"grant_type": "refresh_token", "refresh_token": token}
    if refresh.token_endpoint_auth.type != "client_secret_basic":
        form["client_id"] = refresh.client_id
    if refresh.token_endpoint_auth.type == "client_secret_post":
        form["client_secret"] = secret
    if refresh.scope:
        form["scope"] = refresh.scope
    if refresh.resource:
        form["resource"] = refresh.resource
    return form


async def repeat(call: Callable[[], Awaitable[T]]) -> T:
    """Return the result of a call, which is repeated while the table or KMS is unavailable."""
    for attempt in range(ATTEMPTS - 1):
        try:
            return await call()
        except StoreUnavailable:
            await asyncio.sleep(0.2 * 2**attempt)
    return await call()
