"""The use cases of one tenant that the routes of OpenAI's Agents API call."""

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from stint.apis.agents import AgentsServices
from stint.dataclasses import dataclass
from stint.lazy import Lazy, lazy

if TYPE_CHECKING:
    from stint.openai_agents.automation_targets import SessionTargets
    from stint.openai_agents.automations import AgentAutomations
    from stint.openai_agents.session_reader import SessionReader
    from stint.openai_agents.sessions import AgentSessions
    from stint.services.automations.automations import Automations
    from stint.services.automations.targets import Targets
    from stint.services.vaults.vaults import Vaults

MakeAutomations: TypeAlias = "Callable[[Targets], Automations]"


@dataclass(frozen=True)
class OpenAIAgentsServices(AgentsServices):
    """The use cases. A stream of a session ends after `stream_seconds`, and takes no input in the last `stream_rest`.

    `stream_rest` is in seconds, too. `get_vaults` loads the vaults when they are first used, and `make_automations` the
    automations.
    """

    stream_seconds: float
    stream_rest: float
    get_vaults: "Callable[[], Vaults]"
    make_automations: MakeAutomations

    reader: "ClassVar[Lazy[OpenAIAgentsServices, SessionReader]]" = lazy(
        "stint.openai_agents.session_reader:SessionReader",
        lambda self, cls: cls(self.tenant, self.store, self.agents, self.turn_requests),
    )
    agent_sessions: "ClassVar[Lazy[OpenAIAgentsServices, AgentSessions]]" = lazy(
        "stint.openai_agents.sessions:AgentSessions",
        lambda self, cls: cls(
            self.reader, self.agents, self.sessions, self.creations, self.toolgroups.tools, self.get_vaults
        ),
    )
    automation_targets: "ClassVar[Lazy[OpenAIAgentsServices, SessionTargets]]" = lazy(
        "stint.openai_agents.automation_targets:SessionTargets", lambda self, cls: cls(self.agent_sessions)
    )
    automations: "ClassVar[Lazy[OpenAIAgentsServices, AgentAutomations]]" = lazy(
        "stint.openai_agents.automations:AgentAutomations",
        lambda self, cls: cls(self.make_automations(self.automation_targets), self.automation_targets),
    )
