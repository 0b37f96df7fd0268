"""The scenarios of routes: each POST has one if it stores something."""

CREATING = {
    "/v1/agents": "create-agent",
    "/v1/agents/{agent_id}/session": "create-session",
    "/v1/agents/{agent_id}/session/{session_id}/turn/{turn_id}/cancel": "cancel-turn",
    "/v1/agents/{agent_id}/session/{session_id}/turn/{turn_id}/heartbeat": "heartbeat",
    "/v1/responses/{response_id}/cancel": "cancel-response",
    "/v1/responses/{response_id}/heartbeat": "heartbeat-response",
    "/v1/conversations": "create-conversation",
    "/v1/conversations/{conversation_id}/items": "create-items",
    "/v1/files": "create-file",
    "/v1/uploads": "create-upload",
    "/v1/uploads/{upload_id}/parts": "create-part",
    "/v1/uploads/{upload_id}/complete": "complete-upload",
    "/v1/containers": "create-container",
    "/v1/containers/{container_id}/files": "create-container-file",
    "/v1/toolgroups": "create-toolgroup",
    "/v1/models": "create-model",
    "/v1/shields": "create-shield",
    "/v1/vaults": "create-vault",
    "/v1/vaults/{vault_id}/credentials": "create-credential",
    "/v1/admin/keys": "create-key",
    "/v1/admin/keys/{key_id}/rotate": "rotate-key",
    "/v1/admin/stop": "add-stop",
    "/v1/webhook_endpoints": "create-webhook-endpoint",
    "/v1/webhook_endpoints/{webhook_endpoint_id}/rotate_secret": "rotate-webhook-secret",
    "/agents/create": "create-october-agent",
    "/agents/session/create": "create-october-session",
    "/models/register": "create-october-model",
    "/shields/register": "create-october-shield",
}
"""The scenario of each path whose POST creates something, or ends a run. It goes on while its tenant is stopped."""

RUNNING = {
    "/v1/agents/{agent_id}/session/{session_id}/turn": "create-turn",
    "/v1/agents/{agent_id}/session/{session_id}/turn/{turn_id}/resume": "resume",
    "/v1/agents/{agent_id}/ag-ui": "ag-ui-run",
    "/v1/agents/{agent_id}/a2a": "send-task",
    "/v1/agents/sessions": "create-agent-session",
    "/v1/agents/sessions/{session_id}/events": "post-session-message",
    "/v1/agents/automations": "create-automation",
    "/v1/agents/automations/{automation_id}/invocations": "create-invocation",
    "/v1/responses": "create-response",
    "/v1/chat/completions": "create-chat",
    "/v1/mcp": "mcp-call",
    "/v1/vector_stores": "create-vector-store",
    "/v1/vector_stores/{vector_store_id}/files": "ingest-file",
    "/v1/vector_stores/{vector_store_id}/file_batches": "create-batch",
    "/v1/vector-dbs": "create-vector-db",
    "/v1/vector-io/insert": "insert-chunks",
    "/v1/tool-runtime/rag-tool/insert": "insert-documents",
    "/agents/turn/create": "october-turn",
    "/memory_banks/register": "create-registered-bank",
    "/memory/create": "create-october-bank",
    "/memory/insert": "october-insertion",
}
"""The scenario of each path whose POST creates something with a model or with embeddings. A stop refuses it."""

SAME_AS = {
    "/v1/agents/{agent_id}/mcp": "/v1/mcp",
    "/memory/update": "/memory/insert",
    "/agents/delete": "DELETE /v1/agents/{agent_id}",
    "/agents/session/delete": "DELETE /v1/agents/{agent_id}/session/{session_id}",
    "/memory/drop": "DELETE /v1/vector-dbs/{vector_db_id:path}",
    "/memory/documents/delete": "DELETE /v1/vector_stores/{vector_store_id}/files/{file_id}",
}
"""Paths whose POST does what another route does, which has a scenario."""

CHANGING = frozenset(
    {
        "/v1/agents/{agent_id}",
        "/v1/agents/automations/{automation_id}",
        "/v1/agents/automations/{automation_id}/pause",
        "/v1/agents/automations/{automation_id}/resume",
        "/v1/agents/sessions/{session_id}",
        "/v1/conversations/{conversation_id}",
        "/v1/chat/completions/{completion_id}",
        "/v1/uploads/{upload_id}/cancel",
        "/v1/vaults/{vault_id}",
        "/v1/vaults/{vault_id}/credentials/{credential_id}",
        "/v1/vector_stores/{vector_store_id}",
        "/v1/vector_stores/{vector_store_id}/files/{file_id}",
        "/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/cancel",
        "/v1/webhook_endpoints/{webhook_endpoint_id}",
    }
)
"""Paths whose POST changes an object that exists: a repetition leaves it as the first request does.

It goes on while its tenant is stopped."""

REFUSED = "/v1/agents/environments"
"""The path of the Agents API that is refused by name."""

STORING_NOTHING = frozenset(
    {
        "/v1/responses/compact",
        "/v1/responses/input_tokens",
        "/v1/completions",
        "/v1/inference/chat-completion",
        "/v1/inference/completion",
        "/v1/inference/batch-chat-completion",
        "/v1/inference/batch-completion",
        "/v1/embeddings",
        "/v1/inference/embeddings",
        "/v1/tool-runtime/invoke",
        "/v1/webhook_endpoints/{webhook_endpoint_id}/test",
        "/v1/safety/run-shield",
        "/v1/telemetry/spans",
        "/inference/chat_completion",
        "/inference/completion",
        "/inference/embeddings",
        "/safety/run_shield",
        "/telemetry/log_event",
        "/batch_inference/{method:path}",
        "/datasets/{method:path}",
        "/evaluate/{method:path}",
        "/post_training/{method:path}",
        "/reward_scoring/{method:path}",
        "/synthetic_data_generation/{method:path}",
        *(f"{REFUSED}{rest}" for rest in ("", "/{rest:path}")),
    }
)
"""Paths whose POST stores no object. Those that only read say so at their functions."""
