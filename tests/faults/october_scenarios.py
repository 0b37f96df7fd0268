"""The API of October 2024: a turn, and each POST that creates something."""

from typing import Any, ClassVar

from tests.faults.api import Api, Body
from tests.faults.creation_scenarios import AgentCreation, ModelCreation, SessionCreation, ShieldCreation
from tests.faults.knowledge_creations import VectorDBCreation
from tests.faults.scenario import Finding, Findings, Scenario
from tests.faults.turn_scenarios import SERVER_CALLS, TurnScenario, user


class OctoberTurn(TurnScenario):
    """A streamed turn with two tools of the server. Its ids begin with that of the session."""

    name = "october-turn"
    text = SERVER_CALLS

    def act(self, api: Api) -> None:
        _, _, _, agent, _, session = self.session.split("/")
        self.place = {"agent_id": agent, "session_id": session}
        self.reply = api.post("/agents/turn/create", self.place | {"messages": user(self.text), "stream": True})

    def check(self, api: Api) -> Findings:
        self.api = api
        yield from super().check(api)

    def _check_event(self, event: Body, stored: dict[str, Body]) -> Findings:
        kind = event["event_type"]
        if kind == "turn_start" and event["turn_id"].rpartition(":")[2] not in stored:
            yield Finding("lost", "an announced turn")
        if kind == "step_complete":
            announced = event["step_details"]
            yield from self._check_stored(announced, self._read(announced["turn_id"])["steps"], "step")
        if kind == "turn_complete":
            yield from self._check_stored(event["turn"], [self._read(event["turn"]["turn_id"])], "end of a turn")

    def _read(self, turn_id: str) -> Body:
        found = self.api.post("/agents/turn/get", self.place | {"turn_id": turn_id}).body
        return found if "steps" in found else {"steps": []}

    def _check_stored(self, announced: Body, stored: list[Any], what: str) -> Findings:
        if announced not in stored:
            yield Finding("lost", f"an announced {what}")


class OctoberAgentCreation(AgentCreation):
    name = "create-october-agent"
    path = "/agents/create"
    body: ClassVar[Body] = {
        "agent_config": {"model": "scripted/demo", "instructions": "", "enable_session_persistence": True}
    }


class OctoberSessionCreation(SessionCreation):
    name = "create-october-session"

    def request(self) -> tuple[str, Body | None]:
        return "/agents/session/create", {"agent_id": self.agent, "session_name": "s"}


class OctoberBankRegistration(VectorDBCreation):
    """A bank is registered. The answer is null."""

    name = "create-registered-bank"
    path = "/memory_banks/register"
    body: ClassVar[Body] = {"memory_bank": {"identifier": "facts"}}


class OctoberBankCreation(VectorDBCreation):
    """A bank is created, whose id the server chooses."""

    name = "create-october-bank"
    path, id_field = "/memory/create", "bank_id"
    body: ClassVar[Body] = {"name": "facts", "config": {"type": "vector", "embedding_model": "hashed/words-384"}}


class OctoberModelRegistration(ModelCreation):
    name = "create-october-model"
    path = "/models/register"
    body: ClassVar[Body] = {
        "model": {"identifier": "mine", "llama_model": "demo", "provider_id": "scripted", "metadata": {}}
    }


class OctoberShieldRegistration(ShieldCreation):
    name = "create-october-shield"
    path = "/shields/register"
    body: ClassVar[Body] = {
        "shield": {"identifier": "mine", "type": "mine", "provider_id": "", "params": {"phrases": ["forbidden"]}}
    }


OCTOBER: list[type[Scenario]] = [
    OctoberTurn,
    OctoberAgentCreation,
    OctoberSessionCreation,
    OctoberBankRegistration,
    OctoberBankCreation,
    OctoberModelRegistration,
    OctoberShieldRegistration,
]
