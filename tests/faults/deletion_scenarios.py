"""Each DELETE. It either leaves the object as it was, or nothing of it, even if nobody repeats the request."""

from tests.faults.api import Api, Body
from tests.faults.knowledge_creations import make_file
from tests.faults.scenario import LATER, Finding, Findings, Scenario, check_no_record
from tests.faults.turn_scenarios import user

AGENT = {"agent_config": {"model": "scripted/demo", "instructions": ""}}


class DeletionScenario(Scenario):
    """`prepare` sets the path of the object, and the part of its id that all of its records have."""

    has_work = True
    path: str
    marker: str

    def prepare(self, api: Api) -> None:
        self.path, self.marker = self.make(api)
        self.before = api.read(self.path)

    def make(self, api: Api) -> tuple[str, str]:
        """Make the object, and return its path and its marker."""
        raise NotImplementedError

    def act(self, api: Api) -> None:
        self.reply = api.delete(self.path)

    def check(self, api: Api) -> Findings:
        for _ in range(3):
            self.cloud.work_off(LATER, redeliver=True)
        found = api.get(self.path)
        if found.status == 404:
            yield from self._check_rest("")
            return
        if self.reply.ok:
            yield Finding("lost", "an announced deletion")
        if self.changed(found.body):
            yield Finding("stuck", f"a part of the object: {found.status} {found.text[:200]}")
        again = api.delete(self.path)
        self.cloud.work_off(LATER, redeliver=True)
        if not again.ok:
            yield Finding("stuck", f"the repeated request: {again.status} {again.text[:200]}")
        yield from self._check_rest(" after the repeated request")

    def changed(self, body: Body) -> bool:
        return body != self.before

    def _check_rest(self, when: str) -> Findings:
        for finding in check_no_record(self.cloud, self.marker):
            yield Finding(finding.kind, finding.text + when)


class AgentDeletion(DeletionScenario):
    name = "delete-agent"

    def make(self, api: Api) -> tuple[str, str]:
        agent = api.make("/v1/agents", AGENT)["agent_id"]
        make_session(api, agent)
        return f"/v1/agents/{agent}", agent


class SessionDeletion(DeletionScenario):
    name = "delete-session"

    def make(self, api: Api) -> tuple[str, str]:
        agent = api.make("/v1/agents", AGENT)["agent_id"]
        session = make_session(api, agent)
        return f"/v1/agents/{agent}/session/{session}", session


def make_session(api: Api, agent: str) -> str:
    """Make a session with two turns, and return its id."""
    session = str(api.make(f"/v1/agents/{agent}/session", {"session_name": "s"})["session_id"])
    for _ in range(2):
        body = {"messages": user("say: one"), "stream": False}
        api.make(f"/v1/agents/{agent}/session/{session}/turn", body)
    return session


class ResponseDeletion(DeletionScenario):
    name = "delete-response"

    def make(self, api: Api) -> tuple[str, str]:
        response = api.make("/v1/responses", {"model": "scripted/demo", "input": "say: one"})["id"]
        return f"/v1/responses/{response}", response


class ConversationDeletion(DeletionScenario):
    name = "delete-conversation"

    def make(self, api: Api) -> tuple[str, str]:
        conversation = api.make("/v1/conversations", {"items": [{"role": "user", "content": "Hello"}]})["id"]
        api.make("/v1/responses", {"model": "scripted/demo", "input": "say: one", "conversation": conversation})
        return f"/v1/conversations/{conversation}", conversation


class ItemDeletion(DeletionScenario):
    name = "delete-item"

    def make(self, api: Api) -> tuple[str, str]:
        conversation = api.make("/v1/conversations", {"items": [{"role": "user", "content": "Hello"}]})["id"]
        [item] = api.read(f"/v1/conversations/{conversation}/items")["data"]
        return f"/v1/conversations/{conversation}/items/{item['id']}", item["id"].partition("_")[2]


class ChatDeletion(DeletionScenario):
    name = "delete-chat"

    def make(self, api: Api) -> tuple[str, str]:
        body = {"model": "scripted/demo", "messages": user("say: one"), "store": True}
        completion = api.make("/v1/chat/completions", body)["id"]
        return f"/v1/chat/completions/{completion}", completion


class FileDeletion(DeletionScenario):
    name = "delete-file"

    def make(self, api: Api) -> tuple[str, str]:
        file = make_file(api)
        return f"/v1/files/{file}", file


class VectorStoreDeletion(DeletionScenario):
    name = "delete-vector-store"

    def make(self, api: Api) -> tuple[str, str]:
        store = make_vector_store(api)
        self.cloud.work_off()
        return f"/v1/vector_stores/{store}", store

    def changed(self, body: Body) -> bool:
        return bool(body.get("file_counts") != self.before["file_counts"])


def make_vector_store(api: Api) -> str:
    """Make a vector store that ingests a file, and return its id."""
    store = str(api.make("/v1/vector_stores", {"name": "Animals"})["id"])
    api.make(f"/v1/vector_stores/{store}/files", {"file_id": make_file(api)})
    return store


class StoreFileDeletion(VectorStoreDeletion):
    name = "delete-vector-store-file"

    def make(self, api: Api) -> tuple[str, str]:
        path, _ = super().make(api)
        [file] = api.read(f"{path}/files")["data"]
        return f"{path}/files/{file['id']}", f"document:{file['id']}"

    def changed(self, body: Body) -> bool:
        return body != self.before


class VectorDBDeletion(DeletionScenario):
    name = "delete-vector-db"

    def make(self, api: Api) -> tuple[str, str]:
        body = {"vector_db_id": "animals", "embedding_model": "hashed/words-384", "embedding_dimension": 384}
        api.make("/v1/vector-dbs", body)
        return "/v1/vector-dbs/animals", "vector"


class ToolgroupDeletion(DeletionScenario):
    name = "delete-toolgroup"

    def make(self, api: Api) -> tuple[str, str]:
        uri = {"uri": f"{self.cloud.tools.url}/mcp"}
        body = {"toolgroup_id": "mine", "provider_id": "model-context-protocol", "mcp_endpoint": uri}
        api.send("POST", "/v1/toolgroups", body)
        return "/v1/toolgroups/mine", "tool_group:mine"


class ModelDeletion(DeletionScenario):
    name = "delete-model"

    def make(self, api: Api) -> tuple[str, str]:
        body = {"model_id": "mine", "provider_id": "scripted", "provider_model_id": "demo"}
        api.make("/v1/models", body)
        return "/v1/models/mine", "model:mine"


class ShieldDeletion(DeletionScenario):
    name = "delete-shield"

    def make(self, api: Api) -> tuple[str, str]:
        api.make("/v1/shields", {"shield_id": "mine", "params": {"phrases": ["forbidden"]}})
        return "/v1/shields/mine", "shield:mine"


class ContainerDeletion(DeletionScenario):
    name = "delete-container"

    def make(self, api: Api) -> tuple[str, str]:
        container = api.make("/v1/containers", {"name": "Work", "file_ids": [make_file(api)]})["id"]
        return f"/v1/containers/{container}", container

    def changed(self, body: Body) -> bool:
        return bool(body["name"] != self.before["name"])

    def _check_rest(self, when: str) -> Findings:
        """Check nothing: the task of a container is delivered after 15 minutes, and deletes what is left."""
        yield from ()


class ContainerFileDeletion(DeletionScenario):
    name = "delete-container-file"

    def make(self, api: Api) -> tuple[str, str]:
        container = api.make("/v1/containers", {"name": "Work", "file_ids": [make_file(api)]})["id"]
        [file] = api.read(f"/v1/containers/{container}/files")["data"]
        return f"/v1/containers/{container}/files/{file['id']}", file["id"]


DELETIONS: list[type[Scenario]] = [
    AgentDeletion,
    SessionDeletion,
    ResponseDeletion,
    ConversationDeletion,
    ItemDeletion,
    ChatDeletion,
    FileDeletion,
    VectorStoreDeletion,
    StoreFileDeletion,
    VectorDBDeletion,
    ToolgroupDeletion,
    ModelDeletion,
    ShieldDeletion,
    ContainerDeletion,
    ContainerFileDeletion,
]
