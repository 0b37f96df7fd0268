"""The operations of the OpenAPI document, and for each the requests in which ids can be sent."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import httpx
from tests.api.isolation.belongings import Ids, fill
from tests.api.isolation.bodies import FORMS, JSON, Body

DOCUMENT = Path(__file__).parents[3] / "docs" / "openapi.json"

SHARED = frozenset({"provider_id", "call_id", "agent_call_id", "kind"})
"""Names of ids that are not a tenant's: those of the stack, and those that models choose."""

CHOSEN = frozenset({"user", "stop_id"})
"""Names of ids that callers choose, or that need not be of an object. An unknown one has nothing, but is no error."""

PLAIN_QUERIES = frozenset(
    {
        *("limit", "order", "include", "start_index", "purpose", "filter", "stream", "starting_after"),
        *("mcp_endpoint", "start", "end", "group_by", "name", "subject", "export", "status", "metadata"),
        "include_obfuscation",
        "A2A-Version",
    }
)
"""Query parameters that name no object of a tenant."""

QUERIES = {
    "model": "model_id",
    "model_id": "model_id",
    "toolgroup_id": "toolgroup_id",
    "tool_group_id": "toolgroup_id",
    "turn_ids": "turn_id",
    "tenant": "tenant",
    "key_id": "key_id",
    "agent_id": "agent_id",
    "session_id": "session_id",
}
"""Query parameters that name an object, and the name of its id."""

CURSORS = {
    "/v1/admin/users/{user}": "user_cursor",
    "/v1/admin/users/{user}/export": "user_cursor",
    "/v1/admin/keys": "key_id",
    "/v1/admin/runs": "response_id",
    "/v1/webhook_endpoints": "webhook_endpoint_id",
    "/v1/agents": "agent_id",
    "/v1/agents/{agent_id}/sessions": "session_id",
    "/v1/agents/{agent_id}/session/{session_id}/turns": "turn_id",
    "/v1/agents/automations": "automation_id",
    "/v1/agents/automations/{automation_id}/invocations": "invocation_id",
    "/v1/agents/sessions": "agent_session_id",
    "/v1/agents/sessions/{session_id}/items": "agent_item_id",
    "/v1/agents/sessions/{session_id}/traces": "agent_turn_id",
    "/v1/agents/sessions/{session_id}/turns": "agent_turn_id",
    "/v1/agents/sessions/{session_id}/turns/{turn_id}/items": "agent_item_id",
    "/v1/responses": "response_id",
    "/v1/responses/{response_id}/input_items": "input_item_id",
    "/v1/conversations": "conversation_id",
    "/v1/conversations/{conversation_id}/items": "item_id",
    "/v1/chat/completions": "completion_id",
    "/v1/chat/completions/{completion_id}/messages": "message_id",
    "/v1/files": "file_id",
    "/v1/containers": "container_id",
    "/v1/containers/{container_id}/files": "container_file_id",
    "/v1/vaults": "vault_id",
    "/v1/vaults/{vault_id}/credentials": "credential_id",
    "/v1/vector_stores": "vector_store_id",
    "/v1/vector_stores/{vector_store_id}/files": "store_file_id",
    "/v1/vector_stores/{vector_store_id}/files/{file_id}/chunks": "store_chunk_id",
    "/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/files": "store_file_id",
}
"""The objects of each list. Their ids are its cursors `after` and `before`."""


WAITING = {
    "{session_id}/turn/{turn_id}": "{waiting_session_id}/turn/{waiting_turn_id}",
    "{response_id}": "{waiting_response_id}",
}
"""The ids of messages that wait, in place of those of turns and responses."""

HEADERS = {"POST /v1/agents/{agent_id}/a2a": {"A2A-Version": "1.0"}}
"""The headers without which an operation does nothing."""

OF_WAITING = ("", "/cancel")
"""The operations on messages that wait, by what follows the id."""


@dataclass(frozen=True)
class Operation:
    """An operation of the document."""

    method: str
    path: str
    body: str
    """The media type of its body; empty if it has none."""
    queries: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def address(self) -> str:
        """The path, with other names of ids where an operation needs an object in a certain state."""
        address = self.path.replace("{response_id}/cancel", "{background_response_id}/cancel")
        if address.startswith("/v1/responses/"):
            return address.replace("{step_id}", "{response_step_id}")
        if address.startswith("/v1/agents/sessions/"):
            return address.replace("{session_id}", "{agent_session_id}").replace("{turn_id}", "{agent_turn_id}")
        in_store = address.startswith("/v1/vector_stores/")
        if address.startswith("/v1/containers/"):
            return address.replace("{file_id}", "{container_file_id}")
        return address.replace("{file_id}", "{store_file_id}") if in_store else address

    def requests(self) -> Iterator["RequestTemplate"]:
        """Yield each request: one per body, and one per query parameter that names an object."""
        for number, body in enumerate(JSON.get(self.name, ())):
            yield RequestTemplate(self, f"{self.name} body {number}", body=body)
        if self.name not in JSON:
            yield RequestTemplate(self, self.name)
        for plain, waiting in WAITING.items():
            if self.path.endswith(tuple(f"/{plain}{rest}" for rest in OF_WAITING)):
                yield RequestTemplate(self, f"{self.name} waiting", path=self.path.replace(plain, waiting))
        for name in self.queries:
            if name not in PLAIN_QUERIES:
                yield RequestTemplate(self, f"{self.name} {name}", query=name)

    def id_of_query(self, name: str) -> str:
        return CURSORS[self.path] if name in ("after", "before") else QUERIES[name]


@dataclass(frozen=True)
class RequestTemplate:
    """A request into which ids can be put."""

    operation: Operation
    label: str
    body: Body | None = None
    query: str = ""
    path: str = ""
    """The path, if it is not the operation's address."""

    @property
    def address(self) -> str:
        return self.path or self.operation.address

    @property
    def names_in_path(self) -> frozenset[str]:
        return frozenset(re.findall(r"{(\w+)}", self.address))

    def names(self, ids: Mapping[str, str]) -> list[str]:
        """Return the names of the ids in it."""
        reads = Ids(ids)
        self.arguments(reads)
        return sorted(reads.used - SHARED)

    def arguments(self, ids: Ids) -> dict[str, Any]:
        """Return the arguments of an httpx request."""
        given: dict[str, Any] = {"url": fill(self.address, ids), **FORMS.get(self.operation.name, {})}
        if self.operation.name in HEADERS:
            given["headers"] = HEADERS[self.operation.name]
        if self.body is not None:
            given["json"] = self.body(ids)
        if self.query:
            given["params"] = {self.query: ids[self.operation.id_of_query(self.query)]}
        return given

    def send(self, http: httpx.Client, ids: Mapping[str, str]) -> httpx.Response:
        return http.request(self.operation.method, **self.arguments(Ids(ids)))

    def owners(self, ids: Mapping[str, str]) -> Iterator[frozenset[str]]:
        """Yield each choice of ids that are not the caller's own."""
        names = self.names(ids)
        yield from map(frozenset, chain.from_iterable(map(partial(combinations, names), range(1, len(names) + 1))))


@cache
def list_operations() -> list[Operation]:
    """Return all operations of the document."""
    paths = json.loads(DOCUMENT.read_text())["paths"]
    return [read_operation(method, path, entry) for path, item in paths.items() for method, entry in item.items()]


def read_operation(method: str, path: str, entry: Mapping[str, Any]) -> Operation:
    media = next(iter(entry.get("requestBody", {}).get("content", {})), "")
    queries = tuple(each["name"] for each in entry.get("parameters", ()) if each["in"] == "query")
    return Operation(method.upper(), path, media, queries)


def deletions_last(template: RequestTemplate) -> tuple[bool, int]:
    """Sort objects before those that contain them."""
    return template.operation.method == "DELETE", -template.operation.path.count("/")
