"""Processes that use vaults, and calls of an MCP server that sees only the toolgroup that it would get."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.servers.kms import KEY
from tests.servers.oauth import CLIENT, CLIENT_SECRET, OAuthServer
from tests.services.turn_fixture import IdleQueue

from stint.bootstrap.adapters import Adapters
from stint.bootstrap.agents import delete_agent_objects
from stint.bootstrap.vaults import compose_bound_credentials, compose_vaults
from stint.caller import find_end_user, set_end_user
from stint.domain.errors import ToolUnauthorized
from stint.domain.openai.vaults import CreateCredential, CreateVault, Vault, VaultCredential
from stint.domain.tools import OfferedVaults
from stint.services.deletions import Deletions
from stint.settings import Settings
from stint.store.store import Store
from stint.tools.port import Toolgroup

SERVER = "http://127.0.0.1:9/mcp"
OLD, NEW = "old-access-token", "right-token"
REFRESH = "refresh-token-0"


class VaultFixture:
    """A process of a tenant. Two fixtures of one tenant are two processes."""

    def __init__(self, store: Store, tenant: str, **settings: Any) -> None:
        chosen = {"credentials_key_arn": KEY, "allowed_hosts": "127.0.0.1"} | settings
        self.store, self.tenant, self.queue = store, tenant, IdleQueue()
        adapters = Adapters(Settings(default_model="scripted/demo", scripted_models=True, **chosen))
        deletions = Deletions(delete_agent_objects(store, self.queue.send), self.queue.send)
        self.vaults = compose_vaults(tenant, adapters, store, deletions)
        self.binder = compose_bound_credentials(tenant, adapters, store)

    async def create_vault(self, **fields: Any) -> Vault:
        return await self.vaults.create(CreateVault(**fields))

    async def add_bearer(self, vault: Vault, token: str = OLD, url: str = SERVER) -> VaultCredential:
        auth = {"type": "static_bearer", "token": token, "mcp_server_url": url}
        return await self.vaults.create_credential(
            vault.id, CreateCredential.model_validate({"name": "a", "auth": auth})
        )

    async def add_oauth(
        self, vault: Vault, server: OAuthServer, client: str = "none", url: str = SERVER, **auth: Any
    ) -> VaultCredential:
        """Store tokens that the server renews. `client` is how the client logs in."""
        secret = {} if client == "none" else {"client_secret": CLIENT_SECRET}
        refresh = {
            "client_id": CLIENT,
            "refresh_token": REFRESH,
            "token_endpoint": server.url,
            "token_endpoint_auth": {"type": client, **secret},
        }
        given = {"type": "mcp_oauth", "access_token": OLD, "mcp_server_url": url, "refresh": refresh} | auth
        body = CreateCredential.model_validate({"name": "a", "auth": given})
        return await self.vaults.create_credential(vault.id, body)

    async def sent(
        self, *vaults: Vault, refused: tuple[str, ...] = (), credential_id: str | None = None, **toolgroup: Any
    ) -> str | None:
        """Return the authorization that a call gets. The server answers 401 to the `refused` ones."""
        owner = toolgroup.pop("owner", "")
        offered = OfferedVaults(ids=[vault.id for vault in vaults], owner=owner, credential_id=credential_id)
        fields: dict[str, Any] = {"mcp_endpoint": SERVER, "vaults": offered} | toolgroup

        async def call(bound: Toolgroup) -> str | None:
            assert bound.vaults is None
            token: str | None = bound.config.get("authorization")
            if token in refused:
                error = ToolUnauthorized("no")
                error.status = 401
                raise error
            return token

        return await self.binder.run(Toolgroup("builtin::mcp/a", "model-context-protocol", **fields), call)


@contextmanager
def acting_for_user(user: str) -> Iterator[None]:
    before = find_end_user()
    set_end_user(user)
    try:
        yield
    finally:
        set_end_user(before)
