"""Credentials of vaults for the calls of MCP servers.

Each list of tools and each call finds its credential again, so that what is deleted, rotated or renewed counts at once.
A credential goes to no other address than the one that it names.

    the server has            its credential is
    an Authorization          none of a vault: there is one source only
    a `credential_id`         that one, whose URL must be the server's
    neither                   the only one with the server's URL; none if there is none

A vault that was deleted, or that serves another end user than the session's, has no credentials. An access token that
ends is renewed before the call, and one that the server refuses (401) once after it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from stint.dataclasses import dataclass, replace
from stint.domain.errors import InvalidRequest, NotFound, StoreUnavailable, ToolUnauthorized, ToolUnavailable
from stint.domain.tools import OfferedVaults
from stint.net.urls import same_target
from stint.services.vaults.token_refresh import ROTATE, TokenRefresher, name_of
from stint.services.vaults.vault_secrets import VaultSecrets
from stint.store.vaults import ACCESS_TOKEN, StoredCredential, VaultStore
from stint.tools.headers import fold
from stint.tools.port import Toolgroup

T = TypeVar("T")

AUTHORIZATION = "authorization"
UNAUTHORIZED = 401
NOT_BOUND = "Set vault_ids of the session, and the credential_id of the MCP server."


@dataclass(frozen=True, slots=True)
class BoundCredentials:
    """Finds the credentials of a tenant's calls."""

    tenant: str
    store: VaultStore
    secrets: VaultSecrets
    refresher: TokenRefresher

    async def run(self, toolgroup: Toolgroup, call: Callable[[Toolgroup], Awaitable[T]]) -> T:
        """Run a call with the credential of its server, if it has one.

        Raises:
            ToolUnauthorized: the server refuses the credential.
            ToolUnavailable: the credential cannot be read or renewed.
            InvalidRequest: it is not clear which credential is meant, or the server may not get it.
        """
        found = await self.find(toolgroup)
        plain = replace(toolgroup, vaults=None)
        if found is None:
            return await call(plain)
        with_token, found = await self.bind(plain, found)
        try:
            return await call(with_token)
        except ToolUnauthorized as error:
            if error.status != UNAUTHORIZED or found.credential.refresh is None:
                raise refused(found, error) from None
        with_token, found = await self.bind(plain, found, renews=True)
        try:
            return await call(with_token)
        except ToolUnauthorized as error:
            raise refused(found, error) from None

    async def find(self, toolgroup: Toolgroup) -> StoredCredential | None:
        """Return the credential of a server. Raises InvalidRequest, or ToolUnavailable."""
        offered, url = toolgroup.vaults, toolgroup.mcp_endpoint
        if offered is None or url is None:
            return None
        if has_authorization(toolgroup):
            if offered.credential_id is None:
                return None
            raise InvalidRequest(
                "The MCP server has both an authorization and a credential_id. Remove one of them.", param="toolgroups"
            )
        try:
            known = await self.read(offered)
        except StoreUnavailable as error:
            raise ToolUnavailable(error.message) from error
        chosen = choose(known, offered.credential_id, url)
        if chosen is not None:
            await self.refresher.guard.check_secret_target(url)
        return chosen

    async def read(self, offered: OfferedVaults) -> list[StoredCredential]:
        """Return the credentials of vaults that serve the session."""
        if not offered.ids:
            return []
        found, lists = await asyncio.gather(
            self.store.get_many(self.tenant, offered.ids),
            asyncio.gather(*[self.store.list_credentials(self.tenant, each) for each in offered.ids]),
        )
        served = {vault_id for vault_id, vault in found.items() if vault.serves(offered.owner)}
        return [each for credentials in lists for each in credentials if each.credential.vault_id in served]

    async def bind(
        self, toolgroup: Toolgroup, found: StoredCredential, *, renews: bool = False
    ) -> tuple[Toolgroup, StoredCredential]:
        """Return a toolgroup with the access token of a credential, which is renewed if it ends."""
        try:
            current = await self.renew(found, must=renews) if renews or self.refresher.is_due(found) else found
            token = await self.secrets.decrypt(current, ACCESS_TOKEN)
        except StoreUnavailable as error:
            raise ToolUnavailable(error.message) from error
        except NotFound as error:
            raise ToolUnavailable(f"{name_of(found)} was deleted.".capitalize()) from error
        return replace(toolgroup, config={**toolgroup.config, AUTHORIZATION: token}), current

    async def renew(self, found: StoredCredential, *, must: bool) -> StoredCredential:
        """Return a credential with renewed tokens. Unless it `must` be renewed, one that is still valid is used."""
        try:
            return await self.refresher.renew(found)
        except ToolUnavailable:
            if must or (found.credential.expires_at or 0) <= time.time():
                raise
            return found


def has_authorization(toolgroup: Toolgroup) -> bool:
    """Return whether a server has an authorization of its own, whose value may be encrypted."""
    headers = toolgroup.config.get("headers") or {}
    return bool(toolgroup.config.get(AUTHORIZATION)) or any(fold(name) == AUTHORIZATION for name in headers)


def choose(known: Sequence[StoredCredential], credential_id: str | None, url: str) -> StoredCredential | None:
    """Return the credential of a server. Raises InvalidRequest if there are several, or not the one that is named."""
    matching = [each for each in known if same_target(each.credential.auth.mcp_server_url, url)]
    if credential_id is None:
        if len(matching) > 1:
            ids = ", ".join(each.credential.id for each in matching)
            message = f"Several credentials have the URL of an MCP server: {ids}. Set its credential_id to one of them."
            raise InvalidRequest(message, code="credential_ambiguous", param="toolgroups")
        return matching[0] if matching else None
    found = next((each for each in known if each.credential.id == credential_id), None)
    if found is None:
        message = f"The credential {credential_id[:100]!r} is in none of the session's vaults. {NOT_BOUND}"
        raise InvalidRequest(message, code="credential_not_found", param="toolgroups")
    if found not in matching:
        message = f"The credential {credential_id} is for another URL than that of the MCP server."
        raise InvalidRequest(message, code="credential_mismatch", param="toolgroups")
    return found


def refused(found: StoredCredential, error: ToolUnauthorized) -> ToolUnauthorized:
    """Return the error of a server that refuses a credential."""
    made = ToolUnauthorized(f"The MCP server refuses {name_of(found)} ({error.status or 'unauthorized'}). {ROTATE}")
    made.status = error.status
    return made
