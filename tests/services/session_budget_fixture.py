"""Sessions and conversations with budgets, whose models count their tokens."""

import json
from typing import Any

from tests.script_model import Part, Script
from tests.services.responses.responder import Responder
from tests.services.turn_fixture import TurnFixture
from tests.services.turns.test_turn_tools import KIND, FakeTools
from tests.services.worker_fixture import MCP_TOOL, WorkerFixture
from tests.store.conftest import Cloud

from stint.domain.inference import Finished, FinishReason, TextChunk, ToolCallChunk, Usage
from stint.domain.llama_stack.registrations import ToolGroupRegisterRequest
from stint.domain.openai.conversations import CreateConversation
from stint.domain.openai.response_resource import Response
from stint.domain.session_budgets import SessionBudget, SpentBudget

USED = Usage(input_tokens=100, output_tokens=20, total_tokens=120)
TOKENS = 120
"""Tokens of each model call."""
PRICES = json.dumps({"test/*": {"input": 1_000, "output": 10_000}})
DOLLARS = 0.3
"""Dollars of each model call at these prices."""


def answered() -> list[Part]:
    return [TextChunk("Hi"), Finished(FinishReason.stop, USED)]


def calling(*names: str) -> list[Part]:
    """Return an answer with calls of tools."""
    calls = [ToolCallChunk(place, f"c{place}", name, "{}") for place, name in enumerate(names)]
    return [*calls, Finished(FinishReason.tool_calls, USED)]


class LimitedConversation(Responder):
    """A process that serves the responses of a conversation with a budget."""

    def __init__(self, worker_fixture: WorkerFixture, model: Script) -> None:
        super().__init__(worker_fixture)
        self.script = model
        self.conversation_id = ""

    async def begin(self, **budget: Any) -> "LimitedConversation":
        request = CreateConversation(budget=SessionBudget.model_validate(budget) if budget else None)
        self.conversation_id = (await self.worker_fixture.services.conversations.create(request)).id
        return self

    def heir(self, model: Script) -> "LimitedConversation":
        """Return another process that serves the same conversation."""
        other = LimitedConversation(self.worker_fixture.other_process(model), model)
        other.conversation_id = self.conversation_id
        return other

    @property
    def fields(self) -> dict[str, Any]:
        return {"conversation": self.conversation_id, "tools": [MCP_TOOL]}

    async def answer(self, said: str = "Hello", **fields: Any) -> Response:
        """Run a response of the conversation, and return it."""
        return (await self.respond(said, **(self.fields | fields))).response

    async def queue(self, said: str = "Hello") -> str:
        """Create a response for the worker, and return its id."""
        return await self.worker_fixture.create(said, **self.fields)

    async def budget(self) -> SpentBudget:
        """Return the budget as a reader of the conversation gets it."""
        found = (await self.worker_fixture.services.conversations.get(self.conversation_id)).budget
        assert found is not None
        return found

    async def spent(self) -> int:
        """Return the tokens that the conversation has spent."""
        return (await self.budget()).spent_tokens or 0


class LimitedSession(TurnFixture):
    """A process that serves a session with a budget. Its server tools are `add`, `sub` and `mul`."""

    def __init__(
        self, cloud: Cloud, tenant: str, model: Script, tools: FakeTools | None = None, **settings: Any
    ) -> None:
        self.cloud, self.tools, self.script = cloud, tools or FakeTools(), model
        settings = {"prices": PRICES} | settings
        super().__init__(cloud.store, tenant, model, providers={KIND: self.tools}, **settings)

    async def begin(self, *client_tools: str, **budget: Any) -> "LimitedSession":
        """Create the agent, and a session with a budget."""
        args = {"tools": ["add", "sub", "mul"]}
        request = ToolGroupRegisterRequest(toolgroup_id="math", provider_id=KIND, args=args)
        await self.services.toolgroups.register(request)
        await self.open(*client_tools, toolgroups=["math"])
        limits = SessionBudget.model_validate(budget) if budget else None
        self.session_id = await self.sessions.create(self.agent_id, "talk", budget=limits)
        return self

    def heir(self, model: Script) -> "LimitedSession":
        """Return another process that serves the same session."""
        other = LimitedSession(self.cloud, self.tenant, model, self.tools)
        other.agent_id, other.session_id = self.agent_id, self.session_id
        return other

    async def budget(self) -> SpentBudget:
        """Return the budget as a reader of the session gets it."""
        found = (await self.sessions.get(self.agent_id, self.session_id)).budget
        assert found is not None
        return found

    async def spent(self) -> int:
        """Return the tokens that the session has spent."""
        return (await self.budget()).spent_tokens or 0
