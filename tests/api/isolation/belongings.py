"""Objects of every kind that a tenant has."""

import re
from collections import UserDict
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx
from tests.servers.mcp_server import PNG

from stint.domain.ids import new_id

DIGITS = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32}")
VARYING = re.compile(
    r"\d{4}-\d\d-\d\d[T ][\d:.+Z-]+|(?<=_at\":)\d+|(?<=\"created\":)\d+"
    r"|(?<=milliseconds\":)\d+|(?<=first_token_ms\":)\d+|(?<=dollars\":)[\d.e-]+|(?<=encrypted_content\":)\"st[^\"]+"
)
"""Times, prices, and signed texts."""

EMBEDDING_MODEL = "hashed/words-384"

TURN = "/v1/agents/{agent_id}/session/{session_id}/turn"
WEATHER = {"name": "get_weather", "description": "Returns the weather.", "parameters": []}


class Ids(UserDict[str, str]):
    """Ids by the name of their parameter. `used` are the names that were read."""

    def __init__(self, ids: Mapping[str, str]) -> None:
        super().__init__(ids)
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.used.add(name)
        return super().__getitem__(name)


def fill(path: str, ids: Mapping[str, str]) -> str:
    """Return a path with ids in place of its parameters."""
    return re.sub(r"{(\w+)}", lambda found: quote(ids[found[1]], safe=""), path)


def unknown_like(value: str) -> str:
    """Return an id that nobody has. It has the same form and length, the same shard, and its place in all lists."""
    digits = DIGITS.search(value)
    if digits is None:
        return f"{value[:-4]}none"
    changed = "".join(f"{int(digit, 16) ^ 1:x}" for digit in digits[0][-8:-1])
    return value[: digits.end() - 8] + changed + value[digits.end() - 1 :]


def mask(answer: httpx.Response, ids: Mapping[str, str]) -> str:
    """Return an answer without the ids that were sent, and without all that differs between equal requests."""
    return mask_text(answer.text, ids)


def mask_text(text: str, ids: Mapping[str, str]) -> str:
    for name, value in sorted(ids.items(), key=lambda each: -len(each[1])):
        text = text.replace(value, f"<{name}>")
    return VARYING.sub("<varies>", DIGITS.sub("<id>", text))


def create_belongings(http: httpx.Client, marker: str, mcp_server: str) -> dict[str, str]:
    """Create objects of every kind, all of which contain a marker, and return their ids."""
    return (
        create_key(http, marker)
        | create_webhook_endpoint(http, marker, mcp_server)
        | create_end_user(http, marker)
        | create_agents(http, marker)
        | create_agent_session(http, marker)
        | create_automation(http, marker)
        | create_vault(http, marker)
        | create_responses(http, marker)
        | create_files(http, marker)
        | create_stores(http, marker)
        | register(http, marker, mcp_server)
    )


def create_key(http: httpx.Client, marker: str) -> dict[str, str]:
    key = post(http, "/v1/admin/keys", {"name": marker})
    stop = post(http, "/v1/admin/stop", {"kind": "session", "id": new_id()})  # of no session
    return {"key_id": key["id"], "tenant": key["tenant"], "kind": stop["kind"], "stop_id": stop["id"]}


def create_webhook_endpoint(http: httpx.Client, marker: str, server: str) -> dict[str, str]:
    """Create an endpoint at a server that answers. It gets no event, because none has its type."""
    body = {"name": marker, "url": f"{server}?{marker}", "event_types": ["agent.session.failed"]}
    return {"webhook_endpoint_id": post(http, "/v1/webhook_endpoints", body)["id"]}


def create_end_user(http: httpx.Client, marker: str) -> dict[str, str]:
    """Create an end user with two responses."""
    body = {"model": "scripted/demo", "input": marker, "user": f"user-{marker}"}
    for _ in range(2):
        post(http, "/v1/responses", body)
    page = http.get(f"/v1/admin/users/user-{marker}", params={"limit": 1}).json()
    return {"user": f"user-{marker}", "user_cursor": page["next"]}


def create_agents(http: httpx.Client, marker: str) -> dict[str, str]:
    config = {"model": "scripted/demo", "instructions": marker, "client_tools": [WEATHER]}
    agent = post(http, "/v1/agents", {"agent_config": config})
    session = post(
        http, f"/v1/agents/{agent['agent_id']}/session", {"session_name": marker, "metadata": {"topic": marker}}
    )
    ids = {"agent_id": agent["agent_id"], "session_id": session["session_id"]}
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    [tool] = post(http, f"/v1/agents/{agent['agent_id']}/mcp", listing)["result"]["tools"]
    other = post(http, f"/v1/agents/{agent['agent_id']}/session", {"session_name": marker})
    ids |= {"tool": tool["name"], "mcp_session_id": other["session_id"]}
    message = {"role": "user", "content": f"get_weather for {marker}"}
    waiting = post(http, fill(TURN, ids), {"messages": [message]})
    [step, *_] = waiting["steps"]
    call = waiting["output_message"]["tool_calls"][0]
    return ids | {"turn_id": waiting["turn_id"], "step_id": step["step_id"], "call_id": call["call_id"]}


def create_agent_session(http: httpx.Client, marker: str) -> dict[str, str]:
    """Create a session of OpenAI's Agents API, whose turn waits for the result of a function."""
    tool = {"type": "function", "name": "get_weather", "description": "The weather.", "parameters": {"type": "object"}}
    agent = {"model": "scripted/demo", "instructions": marker, "tools": [tool]}
    body = {"environment": {"type": "none"}, "agent": agent, "input": f"get_weather for {marker}", "stream": True}
    with http.stream("POST", "/v1/agents/sessions", json=body) as answer:
        assert "event: agent.session.requires_action" in answer.iter_lines()
    [session] = http.get("/v1/agents/sessions", params={"limit": 1}).json()["data"]
    [action] = session["required_actions"]
    items = http.get(f"/v1/agents/sessions/{session['id']}/items").json()["data"]
    return {
        "agent_session_id": session["id"],
        "agent_turn_id": action["turn_id"],
        "agent_call_id": action["call_id"],
        "agent_item_id": items[-1]["id"],
    }


def create_automation(http: httpx.Client, marker: str) -> dict[str, str]:
    """Create an automation in the far future, with an invocation."""
    target = {
        "type": "new_session",
        "environment": {"type": "none"},
        "agent": {"model": "scripted/demo", "instructions": marker},
        "input": [{"role": "user", "content": [{"type": "input_text", "text": marker}]}],
    }
    body = {"type": "once", "name": marker, "run_at": 4_000_000_000, "target": target, "metadata": {"topic": marker}}
    path = f"/v1/agents/automations/{(automation := post(http, '/v1/agents/automations', body)['id'])}"
    return {"automation_id": automation, "invocation_id": post(http, f"{path}/invocations", None)["id"]}


def create_vault(http: httpx.Client, marker: str) -> dict[str, str]:
    vault_id = post(http, "/v1/vaults", {"name": marker, "metadata": {"topic": marker}})["id"]
    auth = {"type": "static_bearer", "token": f"token-of-{marker}", "mcp_server_url": "http://127.0.0.1:9/mcp"}
    made = post(http, f"/v1/vaults/{vault_id}/credentials", {"name": marker, "auth": auth})
    return {"vault_id": vault_id, "credential_id": made["id"]}


def create_responses(http: httpx.Client, marker: str) -> dict[str, str]:
    conversation = post(http, "/v1/conversations", {"items": [message(marker)], "metadata": {"topic": marker}})
    include = ["reasoning.encrypted_content"]
    body = {"input": f"think: {marker}", "reasoning": {"effort": "low"}, "include": include}
    response = post(http, "/v1/responses", {"model": "scripted/demo", **body})
    [encrypted] = [item["encrypted_content"] for item in response["output"] if item["type"] == "reasoning"]
    background = post(http, "/v1/responses", {"model": "scripted/demo", "input": marker, "background": True})
    compacted = post(http, "/v1/responses/compact", {"model": "scripted/demo", "input": [message(marker)]})
    [opaque] = [item["encrypted_content"] for item in compacted["output"] if item["type"] == "compaction"]
    items = http.get(f"/v1/conversations/{conversation['id']}/items").json()["data"]
    inputs = http.get(f"/v1/responses/{response['id']}/input_items").json()["data"]
    steps = http.get(f"/v1/responses/{response['id']}/steps").json()["data"]
    chat = {"model": "scripted/demo", "messages": [{"role": "user", "content": marker}], "store": True}
    completion = post(http, "/v1/chat/completions", chat)
    messages = http.get(f"/v1/chat/completions/{completion['id']}/messages").json()["data"]
    return {
        "response_id": response["id"],
        "background_response_id": background["id"],
        "output_item_id": response["output"][-1]["id"],
        "input_item_id": inputs[0]["id"],
        "response_step_id": steps[0]["id"],
        "conversation_id": conversation["id"],
        "item_id": items[0]["id"],
        "completion_id": completion["id"],
        "message_id": messages[0]["id"],
        "encrypted_content": encrypted,
        "compaction": opaque,
    }


def create_files(http: httpx.Client, marker: str) -> dict[str, str]:
    upload = {"bytes": len(marker), "filename": "a.txt", "mime_type": "text/plain", "purpose": "assistants"}
    upload_id = post(http, "/v1/uploads", upload)["id"]
    part = http.post(f"/v1/uploads/{upload_id}/parts", files={"data": ("a.txt", marker.encode())}).json()
    image = create_file(http, PNG, "image.png", "vision")
    file_id = create_file(http, marker.encode())
    container = post(http, "/v1/containers", {"name": marker, "file_ids": [file_id]})["id"]
    [copy] = http.get(f"/v1/containers/{container}/files").json()["data"]
    ids = {"file_id": file_id, "image_id": image, "upload_id": upload_id, "part_id": part["id"]}
    return ids | {"container_id": container, "container_file_id": copy["id"]}


def create_file(http: httpx.Client, content: bytes, name: str = "a.txt", purpose: str = "assistants") -> str:
    answer = http.post("/v1/files", data={"purpose": purpose}, files={"file": (name, content)})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def create_stores(http: httpx.Client, marker: str) -> dict[str, str]:
    store = f"/v1/vector_stores/{(store_id := post(http, '/v1/vector_stores', {'name': marker})['id'])}"
    file = create_file(http, f"Contents of {marker}".encode())
    batch = post(http, f"{store}/file_batches", {"file_ids": [file]})
    name = f"db-{marker}"
    post(http, "/v1/vector-dbs", {"vector_db_id": name, "embedding_model": EMBEDDING_MODEL})
    chunk = {"content": f"Chunk of {marker}", "metadata": {"document_id": marker}}
    post(http, "/v1/vector-io/insert", {"vector_db_id": name, "chunks": [chunk]})
    [listed] = http.get(f"{store}/files/{file}/chunks").json()["data"]
    ids = {"vector_store_id": store_id, "store_file_id": file, "store_chunk_id": listed["id"]}
    return ids | {"batch_id": batch["id"], "vector_db_id": name}


def register(http: httpx.Client, marker: str, mcp_server: str) -> dict[str, str]:
    """Register a shield, a model and a toolgroup."""
    kinds = {"shield_id": "shield-", "model_id": "model-", "embedding_model_id": "embedder-", "toolgroup_id": "mcp::"}
    names = {kind: f"{prefix}{marker}" for kind, prefix in kinds.items()}
    shield = {"shield_id": names["shield_id"], "provider_id": "deny-list", "params": {"phrases": [marker]}}
    post(http, "/v1/shields", shield)
    model = {"model_id": names["model_id"], "provider_id": "scripted", "provider_model_id": "demo"}
    embedder = {"model_id": names["embedding_model_id"], "provider_id": "hashed", "provider_model_id": "words-384"}
    post(http, "/v1/models", model)
    post(http, "/v1/models", embedder | {"model_type": "embedding", "metadata": {"embedding_dimension": 384}})
    toolgroup = {"toolgroup_id": names["toolgroup_id"], "provider_id": "model-context-protocol"}
    post(http, "/v1/toolgroups", toolgroup | {"mcp_endpoint": {"uri": f"{mcp_server}/mcp"}})
    return names | {"tool_name": f"mcp::{marker}/add"}


def message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


def post(http: httpx.Client, path: str, body: Any) -> Any:
    answer = http.post(path, json=body)
    assert answer.status_code == 200, (path, answer.text)
    return answer.json()
