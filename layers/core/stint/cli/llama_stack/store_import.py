"""Import of the agents, sessions and turns that a Llama Stack server stored in a file.

Agents come first, and sessions after them, since a session needs its agent. A row that cannot be imported is reported
with its reason, the others go on, and the command fails at the end. An import may be repeated: what is stored already
is counted and left as it is.

An agent of October 2024 defines its tools itself. One that this server does not have is left out of its configuration,
and reported, instead of losing the agent.
"""

import time
from collections.abc import Mapping
from typing import Any

from stint.cli.llama_stack.report import ImportNote, ImportReport, ImportTally
from stint.cli.llama_stack.rows import RowSource, SessionKey, SessionRows, group_rows, read_object, reason_of
from stint.cli.llama_stack.sessions import SessionImport
from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest, NotFound, NotSupported
from stint.domain.expiry import DAY_SECONDS
from stint.domain.llama_stack.agents import Agent, AgentConfig
from stint.domain.llama_stack.imported_turns import read_time
from stint.domain.paging import MAX_BYTES, carried_size
from stint.domain.schema import now
from stint.october_2024.agents import to_agent_config
from stint.october_2024.schemas.agents import OctoberAgentConfig, ToolDefinition
from stint.store.sessions import SessionPlace
from stint.store.store import Store

NO_AGENT = "its agent was not imported"
NO_SESSION = "the file does not have its session"


@dataclass(frozen=True, slots=True)
class ImportedConfig:
    """A configuration, and the reasons why tools of October 2024 are not in it."""

    config: AgentConfig
    omitted: list[str]


class LlamaStackImport:
    """One import of a file into a tenant. A dry run writes nothing.

    Sessions of agents without persistence expire `expiry_days` after the import.
    """

    def __init__(
        self, tenant: str, store: Store, source: RowSource, expiry_days: float, *, dry_run: bool = False
    ) -> None:
        self.tenant = tenant
        self.store = store
        self.source = source
        self.expires_at = int(time.time() + expiry_days * DAY_SECONDS)
        self.dry_run = dry_run
        self.persistent: dict[str, bool] = {}
        self.tally = ImportTally()

    async def run(self) -> ImportReport:
        """Import all rows, and return what was found and done. A bad row does not stop the others."""
        rows = group_rows(self.source)
        self.tally.ignored = rows.ignored
        for key, reason in rows.bad:
            self.tally.refuse(key, reason)
        for agent_id, key in rows.agents.items():
            await self.import_agent(agent_id, key)
        for ids, session in rows.sessions.items():
            await self.import_session(ids, session)
        return self.tally.make_report(dry_run=self.dry_run)

    async def import_agent(self, agent_id: str, key: str) -> None:
        self.tally.counts["agents"].found += 1
        try:
            agent = self.read_agent(agent_id, key)
        except ValueError as error:
            self.tally.refuse(key, reason_of(error))
            return
        present = await self.has_agent(agent_id)
        if not present and not self.dry_run and not await self.store.imports.put_agent(self.tenant, agent):
            self.tally.refuse(key, "the agent is being deleted. Repeat the import in some minutes")
            return
        self.persistent[agent_id] = agent.agent_config.enable_session_persistence
        self.tally.count("agents", new=not present)

    def read_agent(self, agent_id: str, key: str) -> Agent:
        """Return the agent of a row. Raises ValueError."""
        value = read_object(self.source, key)
        found = read_agent_config(value)
        config = found.config
        self.tally.changed += [ImportNote(key=key, note=note) for note in found.omitted]
        if carried_size(config.model_dump_json()) > MAX_BYTES:
            raise ValueError(f"its configuration has more than {MAX_BYTES} bytes")
        created = read_time(value["created_at"], "created_at") if value.get("created_at") else now()
        return Agent(agent_id=agent_id, agent_config=config, created_at=created)

    async def has_agent(self, agent_id: str) -> bool:
        try:
            await self.store.agents.require(self.tenant, agent_id)
        except NotFound:
            return False
        return True

    async def import_session(self, ids: SessionKey, rows: SessionRows) -> None:
        """Import a session with its turns, unless it has no agent, or no row of its own."""
        persistent = self.persistent.get(ids.agent_id)
        if persistent is None or not rows.key:
            self.tally.counts["sessions"].found += bool(rows.key)
            self.tally.counts["turns"].found += len(rows.turns)
            for key in rows.all_keys():
                self.tally.refuse(key, NO_SESSION if not rows.key else NO_AGENT)
            return
        place = SessionPlace(self.tenant, ids.agent_id, ids.session_id, None if persistent else self.expires_at)
        await SessionImport(self.store, self.source, self.tally, place, rows=rows, dry_run=self.dry_run).run()


def read_agent_config(value: Mapping[str, Any]) -> ImportedConfig:
    """Make a configuration of its JSON object. Raises ValueError (pydantic's ValidationError is one)."""
    if "tools" not in value or "toolgroups" in value:
        return ImportedConfig(AgentConfig.model_validate(value), [])
    old = OctoberAgentConfig.model_validate(value)
    reasons = {place: find_obstacle(old, tool) for place, tool in enumerate(old.tools)}
    usable = [tool for place, tool in enumerate(old.tools) if reasons[place] is None]
    return ImportedConfig(
        to_agent_config(old.model_copy(update={"tools": usable})),
        [f"its tool {old.tools[place].type} is left out: {reason}" for place, reason in reasons.items() if reason],
    )


def find_obstacle(config: OctoberAgentConfig, tool: ToolDefinition) -> str | None:
    """Return why an agent cannot have a tool, or None if it can."""
    try:
        to_agent_config(config.model_copy(update={"tools": [tool]}))
    except (InvalidRequest, NotSupported) as error:
        return error.message
    return None
