"""A body for each operation that takes one. Ids are read from `ids`, so that a test can put those of others there.

Every field of a request that can name an object of a tenant is in one of the bodies.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tests.api.isolation.belongings import Ids, message

Body = Callable[[Ids], Any]

DEMO = "scripted/demo"
HELLO = [message("Hello")]
SPOKEN = [{"role": "user", "content": "Hello"}]
SEARCH = "builtin::rag/knowledge_search"


def constant(body: Any) -> Sequence[Body]:
    """Return a body without ids."""
    return [lambda _: body]


def config(**fields: Any) -> dict[str, Any]:
    return {"agent_config": {"model": DEMO, "instructions": "Be brief."} | fields}


def turn(**fields: Any) -> dict[str, Any]:
    return {"messages": SPOKEN} | fields


def frontend_run(**fields: Any) -> dict[str, Any]:
    return {"threadId": "1", "runId": "1", "messages": [{"id": "1", "role": "user", "content": "Hello"}]} | fields


def searching(ids: Ids) -> dict[str, Any]:
    return {"name": SEARCH, "args": {"vector_db_ids": [ids["vector_db_id"]]}}


def respond(**fields: Any) -> dict[str, Any]:
    return {"model": DEMO, "input": HELLO} | fields


def attached(ids: Ids) -> list[dict[str, Any]]:
    """Return input with a file."""
    return [{"role": "user", "content": [{"type": "input_file", "file_id": ids["file_id"]}]}]


def pictured(ids: Ids) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "input_image", "file_id": ids["image_id"]}]}]


def referring(ids: Ids) -> list[dict[str, Any]]:
    return [{"type": "item_reference", "id": ids["output_item_id"]}, *HELLO]


def reasoned(ids: Ids) -> list[dict[str, Any]]:
    return [{"type": "reasoning", "summary": [], "encrypted_content": ids["encrypted_content"]}, *HELLO]


def compacted(ids: Ids) -> list[dict[str, Any]]:
    return [{"type": "compaction", "encrypted_content": ids["compaction"]}, *HELLO]


def file_search(ids: Ids) -> list[dict[str, Any]]:
    return [{"type": "file_search", "vector_store_ids": [ids["vector_store_id"]]}]


def code_in_container(ids: Ids) -> list[dict[str, Any]]:
    return [{"type": "code_interpreter", "container": ids["container_id"]}]


def code_with_file(ids: Ids) -> list[dict[str, Any]]:
    return [{"type": "code_interpreter", "container": {"type": "auto", "file_ids": [ids["file_id"]]}}]


def chat(**fields: Any) -> dict[str, Any]:
    return {"model": DEMO, "messages": SPOKEN} | fields


def chat_file(ids: Ids) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "file", "file": {"file_id": ids["file_id"]}}]}]


FAR = 4_000_000_000
"""A time of a schedule, in seconds since 1970."""

BEARER = {"type": "static_bearer", "token": "a-long-token", "mcp_server_url": "http://127.0.0.1:9/mcp"}


def session(**agent: Any) -> dict[str, Any]:
    """Return a session of OpenAI's Agents API, with an agent of its own."""
    return {"environment": {"type": "none"}, "agent": {"model": DEMO} | agent, "input": "Hello"}


def with_tool(**tool: Any) -> dict[str, Any]:
    return session(tools=[tool])


def automation(**target: Any) -> dict[str, Any]:
    """Return an automation that runs once, in the far future."""
    return {"type": "once", "name": "mine", "run_at": FAR, "target": target}


def begins(ids: Ids, **fields: Any) -> dict[str, Any]:
    """Return an automation that begins sessions of a saved agent, or of another one in `fields`."""
    said = [{"role": "user", "content": [{"type": "input_text", "text": "Hello"}]}]
    agent = {} if "agent" in fields else {"agent_id": ids["agent_id"]}
    return automation(type="new_session", environment={"type": "none"}, input=said, **agent, **fields)


def sends(ids: Ids) -> dict[str, Any]:
    """Return an automation that sends messages to a session."""
    return automation(type="existing_session", session_id=ids["agent_session_id"], instructions="Hello")


def post_event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"events": [{"type": f"agent.session.input.{kind}", **fields}]}


def mcp_call(tool: str, **arguments: Any) -> dict[str, Any]:
    """Return a call of MCP, of the revision that needs no headers."""
    params = {"name": tool, "arguments": {"message": "Hello"} | arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


MCP_CALLS: Sequence[Body] = (
    lambda ids: mcp_call(ids["tool"]),
    lambda ids: mcp_call(ids["tool"], session_id=ids["mcp_session_id"]),
)


def a2a(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def a2a_message(**fields: str) -> dict[str, Any]:
    return {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Hello"}], **fields}


def task_id(ids: Ids) -> str:
    return f"{ids['turn_id']}.{ids['session_id']}"


def answered(ids: Ids) -> dict[str, Any]:
    return {"tool_responses": [{"call_id": ids["call_id"], "tool_name": "get_weather", "content": "Rain"}]}


def with_input(ids: Ids, put: Body) -> dict[str, Any]:
    return respond(input=put(ids))


def with_items(ids: Ids, put: Body) -> dict[str, Any]:
    return {"items": put(ids)}


STORABLE: Sequence[Body] = (attached, pictured, reasoned, compacted)
INPUTS: Sequence[Body] = (referring, *STORABLE)

CONTEXTS: Sequence[Body] = [
    lambda ids: respond(previous_response_id=ids["response_id"]),
    lambda ids: respond(conversation=ids["conversation_id"]),
    lambda ids: respond(model=ids["model_id"]),
    lambda ids: respond(tools=file_search(ids)),
    lambda ids: respond(tools=code_in_container(ids)),
    lambda ids: respond(tools=code_with_file(ids)),
    *(partial(with_input, put=put) for put in INPUTS),
]

ITEMS: Sequence[Body] = [partial(with_items, put=put) for put in STORABLE]

WEBHOOK_ENDPOINT = {"name": "shop", "url": "http://127.0.0.1:9/", "event_types": ["response.failed"]}

JSON: Mapping[str, Sequence[Body]] = {
    "POST /v1/admin/keys": [lambda ids: {"name": "another", "tenant": ids["tenant"]}],
    "POST /v1/admin/stop": [lambda ids: {"kind": "key", "id": ids["key_id"]}],
    "POST /v1/admin/keys/{key_id}/rotate": constant({"overlap_seconds": 0}),
    "POST /v1/webhook_endpoints": constant(WEBHOOK_ENDPOINT),
    "POST /v1/webhook_endpoints/{webhook_endpoint_id}": constant({"name": "other"}),
    "POST /v1/webhook_endpoints/{webhook_endpoint_id}/rotate_secret": constant({}),
    "POST /v1/webhook_endpoints/{webhook_endpoint_id}/test": constant({"event_type": "response.completed"}),
    "POST /v1/agents": [
        lambda ids: config(toolgroups=[ids["toolgroup_id"]]),
        lambda ids: config(toolgroups=[searching(ids)]),
        lambda ids: config(input_shields=[ids["shield_id"]]),
        lambda ids: config(output_shields=[ids["shield_id"]]),
        lambda ids: config(model=ids["model_id"]),
        lambda _: config(metadata={"topic": "none"}),
    ],
    "POST /v1/agents/{agent_id}/session": [
        lambda _: {"session_name": "talk"},
        lambda _: {"session_name": "talk", "metadata": {"topic": "none"}},
        lambda ids: {"session_name": "talk", "fork_from": {name: ids[name] for name in ("session_id", "turn_id")}},
    ],
    "POST /v1/agents/{agent_id}/session/{session_id}/turn": [
        lambda ids: turn(toolgroups=[ids["toolgroup_id"]]),
        lambda ids: turn(toolgroups=[searching(ids)]),
        lambda ids: turn(input_shields=[ids["shield_id"]]),
        lambda _: turn(stream=True),
        lambda _: turn(when_busy="interrupt"),
        lambda _: turn(when_busy="merge"),
    ],
    "POST /v1/agents/{agent_id}/session/{session_id}/turn/{turn_id}/resume": [answered],
    "POST /v1/agents/{agent_id}/ag-ui": [
        lambda _: frontend_run(),
        lambda ids: frontend_run(threadId=ids["session_id"]),
        lambda ids: frontend_run(threadId=ids["session_id"], messages=[]),
        lambda ids: frontend_run(
            threadId=ids["turn_id"], messages=[{"id": ids["turn_id"], "role": "user", "content": "Hello"}]
        ),
    ],
    "POST /v1/agents/{agent_id}/a2a": [
        lambda _: a2a("SendMessage", message=a2a_message()),
        lambda ids: a2a("SendMessage", message=a2a_message(contextId=ids["session_id"])),
        lambda ids: a2a("SendMessage", message=a2a_message(taskId=task_id(ids))),
        lambda ids: a2a("SendStreamingMessage", message=a2a_message(contextId=ids["session_id"])),
        lambda ids: a2a("GetTask", id=task_id(ids)),
        lambda _: a2a("ListTasks", includeArtifacts=True),
        lambda ids: a2a("ListTasks", contextId=ids["session_id"], includeArtifacts=True),
        lambda ids: a2a("SubscribeToTask", id=task_id(ids)),
        lambda ids: a2a("CancelTask", id=task_id(ids)),
    ],
    "POST /v1/agents/sessions": [
        lambda ids: {"environment": {"type": "none"}, "agent_id": ids["agent_id"], "input": "Hello"},
        lambda ids: session() | {"agent_id": ids["agent_id"], "stream": True},
        lambda ids: session(model=ids["model_id"]),
        lambda ids: session() | {"vault_ids": [ids["vault_id"]]},
        lambda ids: with_tool(type="toolgroup", name=ids["toolgroup_id"]),
        lambda ids: with_tool(type="file_search", vector_store_ids=[ids["vector_store_id"]]),
    ],
    "POST /v1/mcp": MCP_CALLS,
    "POST /v1/agents/{agent_id}/mcp": MCP_CALLS,
    "POST /v1/agents/automations": [
        begins,
        sends,
        lambda ids: begins(ids, agent={"model": ids["model_id"]}),
        lambda ids: begins(ids, vault_ids=[ids["vault_id"]]),
        lambda ids: begins(ids, agent={"model": DEMO, "tools": [{"type": "toolgroup", "name": ids["toolgroup_id"]}]}),
        lambda ids: begins(ids, agent={"model": DEMO, "tools": file_search(ids)}),
    ],
    "POST /v1/agents/automations/{automation_id}": [
        lambda _: {"name": "another"},
        lambda ids: {"target": begins(ids)["target"]},
    ],
    "POST /v1/vaults": [lambda _: {"name": "mine"}],
    "POST /v1/vaults/{vault_id}": [lambda _: {"name": "another"}],
    "POST /v1/vaults/{vault_id}/credentials": [lambda _: {"name": "a", "auth": BEARER}],
    "POST /v1/vaults/{vault_id}/credentials/{credential_id}": [
        lambda _: {"auth": {"type": "static_bearer", "token": "another-token"}},
        lambda _: {"metadata": {"topic": "none"}},
    ],
    "POST /v1/agents/sessions/{session_id}": [
        lambda _: {"metadata": {"topic": "none"}},
        lambda ids: {"agent": {"model": ids["model_id"]}},
        lambda ids: {"agent": {"tools": [{"type": "toolgroup", "name": ids["toolgroup_id"]}]}},
    ],
    "POST /v1/agents/sessions/{session_id}/events": [
        lambda ids: post_event(
            "tool_result", turn_id=ids["agent_turn_id"], call_id=ids["agent_call_id"], success=True, output="Rain"
        ),
        lambda _: post_event("message", input=[{"role": "user", "content": [{"type": "input_text", "text": "Hello"}]}]),
        lambda _: post_event("cancel"),
    ],
    "POST /v1/responses": [
        *CONTEXTS,
        lambda ids: respond(previous_response_id=ids["response_id"], stream=True),
        lambda ids: respond(previous_response_id=ids["response_id"], background=True),
        lambda ids: respond(tools=file_search(ids), background=True),
        lambda ids: respond(conversation=ids["conversation_id"], when_busy="interrupt"),
        lambda ids: respond(conversation=ids["conversation_id"], when_busy="merge"),
    ],
    "POST /v1/responses/compact": [
        lambda ids: {"model": DEMO, "previous_response_id": ids["response_id"]},
        lambda ids: {"model": ids["model_id"], "input": HELLO},
        *(partial(with_input, put=put) for put in INPUTS),
    ],
    "POST /v1/responses/input_tokens": CONTEXTS,
    "POST /v1/conversations": ITEMS,
    "POST /v1/conversations/{conversation_id}": constant({"metadata": {"topic": "none"}}),
    "POST /v1/conversations/{conversation_id}/items": ITEMS,
    "POST /v1/chat/completions": [
        lambda ids: chat(model=ids["model_id"]),
        lambda ids: chat(messages=chat_file(ids)),
    ],
    "POST /v1/chat/completions/{completion_id}": constant({"metadata": {"topic": "none"}}),
    "POST /v1/completions": [lambda ids: {"model": ids["model_id"], "prompt": "Hello"}],
    "POST /v1/inference/chat-completion": [lambda ids: {"model_id": ids["model_id"], "messages": SPOKEN}],
    "POST /v1/inference/completion": [lambda ids: {"model_id": ids["model_id"], "content": "Hello"}],
    "POST /v1/inference/batch-chat-completion": [
        lambda ids: {"model_id": ids["model_id"], "messages_batch": [SPOKEN]},
    ],
    "POST /v1/inference/batch-completion": [lambda ids: {"model_id": ids["model_id"], "content_batch": ["Hello"]}],
    "POST /v1/embeddings": [lambda ids: {"model": ids["embedding_model_id"], "input": "Hello"}],
    "POST /v1/inference/embeddings": [lambda ids: {"model_id": ids["embedding_model_id"], "contents": ["Hello"]}],
    "POST /v1/uploads": constant({"bytes": 5, "filename": "a.txt", "mime_type": "text/plain", "purpose": "assistants"}),
    "POST /v1/uploads/{upload_id}/complete": [lambda ids: {"part_ids": [ids["part_id"]]}],
    "POST /v1/containers": [lambda ids: {"name": "another", "file_ids": [ids["file_id"]]}],
    "POST /v1/containers/{container_id}/files": [lambda ids: {"file_id": ids["image_id"]}],
    "POST /v1/vector_stores": [lambda ids: {"file_ids": [ids["file_id"]]}],
    "POST /v1/vector_stores/{vector_store_id}": constant({"name": "renamed"}),
    "POST /v1/vector_stores/{vector_store_id}/search": constant({"query": "contents"}),
    "POST /v1/vector_stores/{vector_store_id}/files": [lambda ids: {"file_id": ids["file_id"]}],
    "POST /v1/vector_stores/{vector_store_id}/files/{file_id}": constant({"attributes": {"topic": "none"}}),
    "POST /v1/vector_stores/{vector_store_id}/file_batches": [
        lambda ids: {"file_ids": [ids["file_id"]]},
        lambda ids: {"files": [{"file_id": ids["file_id"]}]},
    ],
    "POST /v1/vector-dbs": [lambda ids: {"vector_db_id": "another", "embedding_model": ids["embedding_model_id"]}],
    "POST /v1/vector-io/insert": [
        lambda ids: {
            "vector_db_id": ids["vector_db_id"],
            "chunks": [{"content": "Hello", "metadata": {"document_id": "d"}}],
        },
    ],
    "POST /v1/vector-io/query": [lambda ids: {"vector_db_id": ids["vector_db_id"], "query": "chunk"}],
    "POST /v1/tool-runtime/rag-tool/insert": [
        lambda ids: {"vector_db_id": ids["vector_db_id"], "documents": [{"document_id": "d", "content": "Hello"}]},
    ],
    "POST /v1/tool-runtime/rag-tool/query": [
        lambda ids: {"vector_db_ids": [ids["vector_db_id"]], "content": "chunk"},
    ],
    "POST /v1/toolgroups": constant({"toolgroup_id": "builtin::search", "provider_id": "tavily-search"}),
    "POST /v1/tool-runtime/invoke": [
        lambda ids: {"tool_name": ids["tool_name"], "kwargs": {"a": 1, "b": 2}},
        lambda ids: {
            "tool_name": "knowledge_search",
            "kwargs": {"query": "chunk", "vector_db_ids": [ids["vector_db_id"]]},
        },
    ],
    "POST /v1/shields": constant({"shield_id": "mine", "provider_id": "deny-list", "params": {"phrases": ["x"]}}),
    "POST /v1/safety/run-shield": [lambda ids: {"shield_id": ids["shield_id"], "messages": SPOKEN}],
    "POST /v1/models": constant({"model_id": "mine", "provider_id": "scripted", "provider_model_id": "demo"}),
}

FORMS: Mapping[str, Mapping[str, Any]] = {
    "POST /v1/files": {"data": {"purpose": "assistants"}, "files": {"file": ("a.txt", b"Hello", "text/plain")}},
    "POST /v1/uploads/{upload_id}/parts": {"files": {"data": ("a.txt", b"Hello", "text/plain")}},
}
"""Operations whose body is a form, as arguments of httpx."""
