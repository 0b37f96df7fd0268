"""Agents: create, read, list, change, delete.

A session runs with the configuration that its agent had when it was created, so a stored configuration never changes,
and a process may cache it. A change of an agent is a configuration beside that of its creation, which new sessions take
as their own (`Sessions.create`). What may change is that the agent exists: each use of a cached
configuration checks that. A deletion in another process is therefore seen at once, and only the time for which a
configuration stays in memory is bounded by `cache_seconds`.

A large configuration is an object, written before its records. The task that deletes an object without records is sent
before it, so that a process that dies in between leaves nothing.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from stint.dataclasses import dataclass, replace
from stint.domain.errors import InvalidRequest, TooLarge
from stint.domain.ids import new_id
from stint.domain.llama_stack.agents import Agent, AgentConfig
from stint.domain.paging import MAX_BYTES, Page, Window, carried_size
from stint.domain.schema import now
from stint.domain.tasks import DeletionTask
from stint.domain.tools import AgentToolGroupWithArgs
from stint.log_keys import add_log_keys
from stint.services.agents.masking import masked_agent, refuse_masked_args
from stint.services.deletions import Deletions
from stint.services.registry.registry import Registry
from stint.store.agents import AgentStore
from stint.store.documents import MAX_ITEM
from stint.tools.encrypted_credentials import EncryptedCredentials
from stint.tools.port import MCP_SERVER

CACHED_CONFIGS = 64
"""Configurations that a process keeps. The oldest is dropped first."""


@dataclass(frozen=True, slots=True)
class CachedConfig:
    config: AgentConfig
    until: float


class Agents:
    """The agents of a tenant. A configuration never changes, so a warm process caches some for a short time."""

    def __init__(
        self,
        tenant: str,
        store: AgentStore,
        registry: Registry,
        deletions: Deletions,
        cache_seconds: float,
        credentials: EncryptedCredentials,
    ) -> None:
        self.tenant = tenant
        self.store = store
        self.registry = registry
        self.deletions = deletions
        self.cache_seconds = cache_seconds
        self.credentials = credentials
        self.cache: dict[str, CachedConfig] = {}

    async def create(self, config: AgentConfig, agent_id: str | None = None, *, expires_at: int | None = None) -> str:
        """Store an agent under a new id, and return the id. It expires at `expires_at`, in seconds since 1970.

        Raises:
            TooLarge: the configuration would not fit into a response.
            InvalidRequest: the args of a toolgroup contain the mask of a credential, or those of an MCP server are
                malformed.
            StoreUnavailable: the credentials of an MCP server cannot be encrypted.
            Forbidden: the caller may not use the agent's model.
        """
        stored = await self.prepare(config)
        agent = Agent(agent_id=agent_id or new_id(), agent_config=stored, created_at=now())
        if carried_size(stored.model_dump_json()) > MAX_ITEM // 2:  # it may be stored as an object before its records
            await self.deletions.send(DeletionTask(tenant=self.tenant, agent_id=agent.agent_id).before_creation())
        await self.store.create(self.tenant, agent, expires_at)
        return agent.agent_id

    async def prepare(self, config: AgentConfig) -> AgentConfig:
        """Check a new configuration, and return it as it is stored, with encrypted credentials. Raises as `create`."""
        refuse_masked_args(config.toolgroups, "agent_config.toolgroups")
        # Also checked by each turn. Here the caller learns it at once.
        await self.require_model(config.model)
        if any(isinstance(group, AgentToolGroupWithArgs) and group.name == MCP_SERVER for group in config.toolgroups):
            from stint.services.agents.sealing import seal_servers  # noqa: PLC0415 - few agents name a server

            config = await seal_servers(config, self.credentials)
        size = carried_size(config.model_dump_json())
        if size > MAX_BYTES:
            raise TooLarge(f"The agent_config has {size} bytes; at most {MAX_BYTES} are allowed.", param="agent_config")
        return config

    async def change(self, agent_id: str, change: Callable[[AgentConfig], AgentConfig]) -> Agent:
        """Change the configuration that new sessions of an agent get, and return the agent with masked credentials.

        `change` returns the new configuration for the latest one. It is called again after a concurrent change.

        Raises:
            NotFound: there is no such agent.
            StintError: as `create`, or as `change`.
        """
        while True:
            found, entry = await self.store.get_latest(self.tenant, agent_id)
            config = await self.prepare(change(found.agent_config))
            changed = found.model_copy(update={"agent_config": config, "updated_at": now()})
            if await self.store.change(self.tenant, changed, entry):
                return await asyncio.to_thread(masked_agent, changed)

    async def require_model(self, model_id: str) -> None:
        """Raise Forbidden if the caller may not use a model. An unknown model is refused by the first turn."""
        if self.registry.access.is_limited:
            with suppress(InvalidRequest):
                await self.registry.route(model_id)

    async def get(self, agent_id: str) -> Agent:
        """Return an agent as it is since its latest change, with masked credentials. Raises NotFound."""
        agent, _ = await self.store.get_latest(self.tenant, agent_id)
        return await asyncio.to_thread(masked_agent, agent)

    async def config_of_new_session(self, agent_id: str) -> tuple[AgentConfig, bool]:
        """Return the configuration that a new session of an agent gets, and whether it is the session's own.

        Raises NotFound.
        """
        cached = self.find_cached(agent_id)
        if cached is not None:
            entry = await self.store.require(self.tenant, agent_id)
            if entry.updated_at is None:
                return cached, False
        found, entry = await self.store.get_latest(self.tenant, agent_id)
        if entry.updated_at is None:
            self.keep(agent_id, found.agent_config)
        return found.agent_config, entry.updated_at is not None

    async def list(self, window: Window) -> Page[Agent]:
        """List agents by creation, with masked credentials."""
        page = await self.store.list(self.tenant, window)
        data = await asyncio.to_thread(lambda: [masked_agent(agent) for agent in page.data])
        return replace(page, data=data)

    def find_cached(self, agent_id: str) -> AgentConfig | None:
        """Return the configuration of an agent if this process has read it lately."""
        cached = self.cache.get(agent_id)
        return cached.config if cached is not None and time.monotonic() < cached.until else None

    async def config(self, agent_id: str) -> AgentConfig:
        """Return an agent's configuration, which may be cached. The agent's existence is always checked in the store.

        Raises:
            NotFound: there is no such agent.
        """
        cached = self.find_cached(agent_id)
        if cached is not None:
            await self.require(agent_id)
            return cached
        config = (await self.store.get(self.tenant, agent_id)).agent_config
        self.keep(agent_id, config)
        return config

    def keep(self, agent_id: str, config: AgentConfig) -> None:
        """Cache the configuration of an agent's creation, and add the agent's name to the following log lines."""
        while len(self.cache) >= CACHED_CONFIGS:
            self.cache.pop(next(iter(self.cache)))
        self.cache[agent_id] = CachedConfig(config, time.monotonic() + self.cache_seconds)
        add_log_keys(agent_name=config.name)

    async def find_created(self, agent_id: str) -> str:
        """Return the id of an agent that exists. Raises NotFound."""
        await self.require(agent_id)
        return agent_id

    def name_lines(self, agent_id: str) -> None:
        """Add the agent's name to the following log lines if its configuration is cached."""
        if (cached := self.cache.get(agent_id)) is not None:
            add_log_keys(agent_name=cached.config.name)

    async def require(self, agent_id: str) -> None:
        """Check that an agent exists, and add its name to the following log lines.

        Raises:
            NotFound: there is no such agent.
        """
        add_log_keys(agent_name=(await self.store.require(self.tenant, agent_id)).name)

    async def delete(self, agent_id: str) -> None:
        """Delete an agent with its sessions and turns. When this returns, no reader can find it.

        Raises:
            NotFound: there is no such agent.
        """
        task = DeletionTask(tenant=self.tenant, agent_id=agent_id)
        try:
            await self.deletions.start_deletion(task, partial(self.store.mark_deleted, self.tenant, agent_id))
        # Also after an error: the agent may be marked.
        finally:
            self.cache.pop(agent_id, None)
