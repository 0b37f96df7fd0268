"""Each POST that creates something. A client that got no answer repeats it with its idempotency key."""

import re
from typing import Any, ClassVar

from tests.faults.api import Api, Body, Reply
from tests.faults.cloud import Item
from tests.faults.scenario import Finding, Findings, Scenario
from tests.faults.turn_scenarios import NEXT, user

KEY = {"Idempotency-Key": "key-of-the-request"}


def has_succeeded(reply: Reply) -> bool:
    """Return whether the first attempt succeeded. One that failed after its first heartbeat has the status 200, too."""
    return reply.ok and reply.body.get("status") != "failed"


class CreationScenario(Scenario):
    """A POST. `records` finds the record of what it creates, of which there is then one."""

    path: ClassVar[str]
    body: ClassVar[Body] = {}
    options: ClassVar[dict[str, Any]] = {}
    records: ClassVar[str]
    id_field: ClassVar[str] = "id"
    most_deaths, most_errors = 2, 3

    def request(self) -> tuple[str, Body | None]:
        """Return path and body."""
        return self.path, self.body

    def send(self, api: Api) -> Reply:
        path, body = self.request()
        return api.post(path, body, headers=KEY, **self.options)

    def act(self, api: Api) -> None:
        self.reply = self.send(api)

    def check(self, api: Api) -> Findings:
        again = self.send(api)
        if not again.ok:
            yield Finding("stuck", f"the repeated request: {again.status} {again.text[:200]}")
        if self.reply.ok and again.ok and self.reply.body.get(self.id_field) != again.body.get(self.id_field):
            yield Finding("doubled", "the repeated request has another id")
        found = [f"{pk}|{sk}" for pk, sk in self.cloud.records() if re.search(self.records, f"{pk}|{sk}")]
        if len(found) > 1:
            yield Finding("doubled", f"{len(found)} records: {found}")
        if not found:
            yield Finding("lost", f"no record {self.records}")


class AgentCreation(CreationScenario):
    name = "create-agent"
    path, records, id_field = "/v1/agents", r"#agent\|", "agent_id"
    body: ClassVar[Body] = {"agent_config": {"model": "scripted/demo", "instructions": ""}}


class SessionCreation(CreationScenario):
    name = "create-session"
    records, id_field = r"#session:[^:|]+\|", "session_id"
    body: ClassVar[Body] = {"session_name": "s"}

    def prepare(self, api: Api) -> None:
        agent = api.make("/v1/agents", {"agent_config": {"model": "scripted/demo", "instructions": ""}})
        self.agent = agent["agent_id"]

    def request(self) -> tuple[str, Body | None]:
        return f"/v1/agents/{self.agent}/session", self.body


class TurnCreation(SessionCreation):
    """A turn with a tool, whose request is repeated with its key.

    A turn that failed before its first step is run again. One that failed later is answered with its stored error,
    which has its id.
    """

    name = "create-turn"
    id_field = "turn_id"
    body: ClassVar[Body] = {
        "messages": user('call: book_room {"label": "a"}'),
        "toolgroups": ["desk"],
        "stream": False,
    }

    def prepare(self, api: Api) -> None:
        super().prepare(api)
        self.session = api.make(f"/v1/agents/{self.agent}/session", {"session_name": "s"})["session_id"]

    def request(self) -> tuple[str, Body | None]:
        return f"/v1/agents/{self.agent}/session/{self.session}/turn", self.body

    def check(self, api: Api) -> Findings:
        again = self.send(api)
        if not again.ok and '"turn_id"' not in again.text:
            yield Finding("stuck", f"the repeated request: {again.status} {again.text[:200]}")
        turns = api.read(f"/v1/agents/{self.agent}/session/{self.session}")["turns"]
        succeeded = [turn["turn_id"] for turn in turns if turn["output_message"]["content"]]
        if len(succeeded) > 1:
            yield Finding("doubled", f"{len(succeeded)} turns that succeeded")
        if has_succeeded(self.reply) and again.ok and self.reply.body["turn_id"] != again.body["turn_id"]:
            yield Finding("doubled", "the repeated request has another turn")
        yield from self._check_input(api)

    def _check_input(self, api: Api) -> Findings:
        """The model of the next turn is told once what the user has said."""
        path, body = self.request()
        said = str((body or {})["messages"][0]["content"])
        api.make(path, {"messages": user(NEXT), "stream": False})
        count = (self.cloud.model_requests.find(NEXT) or []).count(said)
        if count != 1:
            yield Finding("doubled" if count else "lost", f"the input is {count} times in the model's request")


class ResponseCreation(CreationScenario):
    """A response with a tool, whose request is repeated with its key, as a turn's is."""

    name = "create-response"
    path, records = "/v1/responses", r"#response\."

    def request(self) -> tuple[str, Body | None]:
        return self.path, {
            "model": "scripted/demo",
            "input": 'call: book_room {"label": "a"}',
            "tools": [self.cloud.tools.mcp_tool],
        }

    def check(self, api: Api) -> Findings:
        again = self.send(api)
        if not again.ok and '"response_id"' not in again.text:
            yield Finding("stuck", f"the repeated request: {again.status} {again.text[:200]}")
        listed = api.read("/v1/responses?limit=100")["data"]
        completed = [response["id"] for response in listed if response["status"] == "completed"]
        if len(completed) > 1:
            yield Finding("doubled", f"{len(completed)} completed responses")
        if has_succeeded(self.reply) and again.ok and self.reply.body["id"] != again.body["id"]:
            yield Finding("doubled", "the repeated request has another response")


class UnstoredResponse(ResponseCreation):
    """The same without storage. Once the tool may have run, the repeated request is refused."""

    name = "unstored-response"

    def request(self) -> tuple[str, Body | None]:
        path, body = super().request()
        return path, (body or {}) | {"store": False}

    def check(self, api: Api) -> Findings:
        again = self.send(api)
        if not again.ok and "outcome_unknown" not in again.text:
            yield Finding("stuck", f"the repeated request: {again.status} {again.text[:200]}")
        if again.ok and not self.cloud.tools.effects:
            yield Finding("lost", "the call of a tool")


class ConversationCreation(CreationScenario):
    name = "create-conversation"
    path, records = "/v1/conversations", r"#conversation:.*\|meta"
    body: ClassVar[Body] = {"items": [{"role": "user", "content": "Hello"}]}


class ItemCreation(CreationScenario):
    name = "create-items"
    records, id_field = r"\|item:", "first_id"
    body: ClassVar[Body] = {"items": [{"role": "user", "content": "Hello"}]}

    def prepare(self, api: Api) -> None:
        self.path_of_items = f"/v1/conversations/{api.make('/v1/conversations', {})['id']}/items"

    def request(self) -> tuple[str, Body | None]:
        return self.path_of_items, self.body


class ChatCreation(CreationScenario):
    name = "create-chat"
    path, records = "/v1/chat/completions", r"#chat_completion\."
    body: ClassVar[Body] = {"model": "scripted/demo", "messages": user("say: one"), "store": True}


class ModelCreation(CreationScenario):
    name = "create-model"
    path, records, id_field = "/v1/models", r"#registry\|model", "identifier"
    body: ClassVar[Body] = {"model_id": "mine", "provider_id": "scripted", "provider_model_id": "demo"}


class ToolgroupCreation(CreationScenario):
    name = "create-toolgroup"
    path, records, id_field = "/v1/toolgroups", r"#registry\|tool_group", "toolgroup_id"

    def request(self) -> tuple[str, Body | None]:
        uri = {"uri": f"{self.cloud.tools.url}/mcp"}
        return self.path, {"toolgroup_id": "mine", "provider_id": "model-context-protocol", "mcp_endpoint": uri}


class ShieldCreation(CreationScenario):
    name = "create-shield"
    path, records, id_field = "/v1/shields", r"#registry\|shield", "identifier"
    body: ClassVar[Body] = {"shield_id": "mine", "params": {"phrases": ["forbidden"]}}


class KeyCreation(CreationScenario):
    """An API key, whose secret is returned once."""

    name = "create-key"
    path, records = "/v1/admin/keys", r"^api_key:.*\|meta"
    body: ClassVar[Body] = {"name": "mine"}

    def send(self, api: Api) -> Reply:
        reply = super().send(api)
        if reply.status == 409 and "secret_returned" in reply.text:
            reply.status, reply.text = 200, self.reply.text
        return reply


class VaultCreation(CreationScenario):
    """A vault of the Agents API."""

    name = "create-vault"
    path, records = "/v1/vaults", r"#vault\|"
    body: ClassVar[Body] = {"name": "Ann"}


class CredentialCreation(CreationScenario):
    """A credential of a vault, whose secret is encrypted."""

    name = "create-credential"
    records = r"#vault:.*\|credential"
    body: ClassVar[Body] = {
        "name": "docs",
        "auth": {"type": "static_bearer", "token": "the-token-of-ann", "mcp_server_url": "http://127.0.0.1:9/mcp"},
    }

    def prepare(self, api: Api) -> None:
        self.vault = api.make("/v1/vaults", {})["id"]

    def request(self) -> tuple[str, Body | None]:
        return f"/v1/vaults/{self.vault}/credentials", self.body


class WebhookEndpointCreation(KeyCreation):
    """A webhook endpoint, whose signing secret is returned once."""

    name = "create-webhook-endpoint"
    path, records = "/v1/webhook_endpoints", r"#registry\|webhook_endpoint"
    body: ClassVar[Body] = {"name": "shop", "url": "http://127.0.0.1:9/", "event_types": ["response.completed"]}


class KeyRotation(CreationScenario):
    """The secret of an API key is replaced. A repetition replaces it again only if the answer could not be stored."""

    name = "rotate-key"
    path, records, action = "/v1/admin/keys", r"^api_key:.*\|meta", "rotate"
    body: ClassVar[Body] = {"name": "mine"}

    def prepare(self, api: Api) -> None:
        self.key_id = api.make(self.path, self.body)["id"]
        self.before = self.find_record()

    def request(self) -> tuple[str, Body | None]:
        return f"{self.path}/{self.key_id}/{self.action}", {}

    def check(self, api: Api) -> Findings:
        rotated = self.find_record()
        again = self.send(api)
        if not again.ok and "secret_returned" not in again.text:
            yield Finding("stuck", f"the repeated request: {again.status} {again.text[:200]}")
        if self.reply.ok and rotated == self.before:
            yield Finding("lost", "an announced secret")
        if self.undisturbed and rotated != self.find_record():
            yield Finding("doubled", "a repeated rotation")

    def find_record(self) -> Item:
        [record] = [item for (pk, sk), item in self.cloud.records().items() if re.search(self.records, f"{pk}|{sk}")]
        return record


class WebhookSecretRotation(KeyRotation):
    """The signing secret of a webhook endpoint is replaced."""

    name = "rotate-webhook-secret"
    path, records, action = WebhookEndpointCreation.path, WebhookEndpointCreation.records, "rotate_secret"
    body: ClassVar[Body] = WebhookEndpointCreation.body


CREATIONS: list[type[Scenario]] = [
    AgentCreation,
    SessionCreation,
    TurnCreation,
    ResponseCreation,
    UnstoredResponse,
    ConversationCreation,
    ItemCreation,
    ChatCreation,
    ModelCreation,
    ToolgroupCreation,
    ShieldCreation,
    KeyCreation,
    VaultCreation,
    CredentialCreation,
    WebhookEndpointCreation,
    KeyRotation,
    WebhookSecretRotation,
]
