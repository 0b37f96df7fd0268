"""The scope that each route needs, and its enforcement."""

from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.types import Scope as ASGIScope

from stint.caller import require_scope
from stint.domain.errors import Forbidden
from stint.domain.principals import Scope

END_USER_HEADER = "x-stint-user"
"""The header that names the end user for whom a request acts."""

ROUTE_SCOPES: Mapping[str, Scope | None] = {
    "POST /v1/agents": "use",
    "GET /v1/agents": "use",
    "GET /v1/agents/{agent_id}": "use",
    "DELETE /v1/agents/{agent_id}": "use",
    "POST /v1/agents/{agent_id}/session": "use",
    "GET /v1/agents/{agent_id}/sessions": "use",
    "DELETE /v1/agents/{agent_id}/session/{session_id}": "use",
    "POST /v1/agents/{agent_id}/session/{session_id}/turn": "use",
    "POST /v1/agents/{agent_id}/session/{session_id}/turn/{turn_id}/resume": "use",
    "POST /v1/agents/{agent_id}/session/{session_id}/turn/{turn_id}/cancel": "use",
    "POST /v1/agents/{agent_id}/session/{session_id}/turn/{turn_id}/heartbeat": "use",
    "GET /v1/agents/{agent_id}/session/{session_id}/turn/{turn_id}": "use",
    "GET /v1/agents/{agent_id}/session/{session_id}/turn/{turn_id}/events": "use",
    "GET /v1/agents/{agent_id}/session/{session_id}/turn/{turn_id}/step/{step_id}": "use",
    "GET /v1/agents/{agent_id}/session/{session_id}": "use",
    "POST /v1/responses": "use",
    "POST /v1/responses/compact": "use",
    "POST /v1/responses/input_tokens": "use",
    "GET /v1/responses": "use",
    "GET /v1/responses/{response_id}": "use",
    "POST /v1/responses/{response_id}/cancel": "use",
    "POST /v1/responses/{response_id}/heartbeat": "use",
    "DELETE /v1/responses/{response_id}": "use",
    "GET /v1/responses/{response_id}/input_items": "use",
    "POST /v1/conversations": "use",
    "GET /v1/conversations": "use",
    "GET /v1/conversations/{conversation_id}": "use",
    "POST /v1/conversations/{conversation_id}": "use",
    "DELETE /v1/conversations/{conversation_id}": "use",
    "POST /v1/conversations/{conversation_id}/items": "use",
    "GET /v1/conversations/{conversation_id}/items": "use",
    "GET /v1/conversations/{conversation_id}/items/{item_id}": "use",
    "DELETE /v1/conversations/{conversation_id}/items/{item_id}": "use",
    "POST /v1/chat/completions": "use",
    "GET /v1/chat/completions": "use",
    "GET /v1/chat/completions/{completion_id}": "use",
    "POST /v1/chat/completions/{completion_id}": "use",
    "DELETE /v1/chat/completions/{completion_id}": "use",
    "GET /v1/chat/completions/{completion_id}/messages": "use",
    "POST /v1/completions": "use",
    "POST /v1/inference/chat-completion": "use",
    "POST /v1/inference/completion": "use",
    "POST /v1/inference/batch-chat-completion": "use",
    "POST /v1/inference/batch-completion": "use",
    "GET /v1/admin/users/{user:path}": "admin",
    "GET /v1/admin/users/{user:path}/export": "admin",
    "DELETE /v1/admin/users/{user:path}": "admin",
    "GET /v1/files": "use",
    "GET /v1/files/{file_id}": "use",
    "GET /v1/files/{file_id}/content": "use",
    "DELETE /v1/files/{file_id}": "use",
    "POST /v1/files": "use",
    "POST /v1/embeddings": "use",
    "POST /v1/inference/embeddings": "use",
    "POST /v1/uploads": "use",
    "POST /v1/uploads/{upload_id}/complete": "use",
    "POST /v1/uploads/{upload_id}/cancel": "use",
    "POST /v1/uploads/{upload_id}/parts": "use",
    "POST /v1/containers": "use",
    "GET /v1/containers": "use",
    "GET /v1/containers/{container_id}": "use",
    "DELETE /v1/containers/{container_id}": "use",
    "POST /v1/containers/{container_id}/files": "use",
    "GET /v1/containers/{container_id}/files": "use",
    "GET /v1/containers/{container_id}/files/{file_id}": "use",
    "GET /v1/containers/{container_id}/files/{file_id}/content": "use",
    "DELETE /v1/containers/{container_id}/files/{file_id}": "use",
    "POST /v1/vector_stores": "knowledge:write",
    "GET /v1/vector_stores": "use",
    "GET /v1/vector_stores/{vector_store_id}": "use",
    "POST /v1/vector_stores/{vector_store_id}": "knowledge:write",
    "DELETE /v1/vector_stores/{vector_store_id}": "knowledge:write",
    "POST /v1/vector_stores/{vector_store_id}/search": "use",
    "POST /v1/vector_stores/{vector_store_id}/files": "knowledge:write",
    "GET /v1/vector_stores/{vector_store_id}/files": "use",
    "GET /v1/vector_stores/{vector_store_id}/files/{file_id}": "use",
    "POST /v1/vector_stores/{vector_store_id}/files/{file_id}": "knowledge:write",
    "DELETE /v1/vector_stores/{vector_store_id}/files/{file_id}": "knowledge:write",
    "GET /v1/vector_stores/{vector_store_id}/files/{file_id}/content": "use",
    "POST /v1/vector_stores/{vector_store_id}/file_batches": "knowledge:write",
    "GET /v1/vector_stores/{vector_store_id}/file_batches/{batch_id}": "use",
    "POST /v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/cancel": "knowledge:write",
    "GET /v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/files": "use",
    "GET /v1/vector-dbs": "use",
    "POST /v1/vector-dbs": "knowledge:write",
    "GET /v1/vector-dbs/{vector_db_id:path}": "use",
    "DELETE /v1/vector-dbs/{vector_db_id:path}": "knowledge:write",
    "POST /v1/vector-io/insert": "knowledge:write",
    "POST /v1/vector-io/query": "use",
    "POST /v1/tool-runtime/rag-tool/insert": "knowledge:write",
    "POST /v1/tool-runtime/rag-tool/query": "use",
    "GET /v1/toolgroups": "use",
    "POST /v1/toolgroups": "registry:write",
    "GET /v1/toolgroups/{toolgroup_id:path}": "use",
    "DELETE /v1/toolgroups/{toolgroup_id:path}": "registry:write",
    "GET /v1/tools": "use",
    "GET /v1/tools/{tool_name:path}": "use",
    "GET /v1/tool-runtime/list-tools": "use",
    "POST /v1/tool-runtime/invoke": "use",
    "GET /v1/shields": "use",
    "POST /v1/shields": "registry:write",
    "GET /v1/shields/{shield_id:path}": "use",
    "DELETE /v1/shields/{shield_id:path}": "registry:write",
    "POST /v1/safety/run-shield": "use",
    "POST /v1/admin/keys": "admin",
    "GET /v1/admin/keys": "admin",
    "GET /v1/admin/keys/{key_id}": "admin",
    "POST /v1/admin/keys/{key_id}/rotate": "admin",
    "DELETE /v1/admin/keys/{key_id}": "admin",
    "POST /v1/admin/stop": "admin",
    "GET /v1/admin/stop": "admin",
    "DELETE /v1/admin/stop/{kind}/{stop_id}": "admin",
    "GET /v1/health": None,
    "GET /v1/version": "use",
    "GET /v1/models": "use",
    "POST /v1/models": "registry:write",
    "GET /v1/models/{model_id:path}": "use",
    "DELETE /v1/models/{model_id:path}": "registry:write",
    "GET /v1/providers": "use",
    "GET /v1/usage": "use",
    "GET /v1/providers/{provider_id}": "use",
    "POST /v1/telemetry/spans": "use",
    "GET /v1/inspect/routes": "use",
    "GET /v1/openapi.json": "use",
    "GET /": "use",
    "HEAD /": "use",
    "GET /docs": "use",
    "HEAD /docs": "use",
    "GET /docs/reference.css": "use",
    "HEAD /docs/reference.css": "use",
    "GET /docs/reference.js": "use",
    "HEAD /docs/reference.js": "use",
    "POST /agents/create": "use",
    "POST /agents/delete": "use",
    "POST /agents/session/create": "use",
    "GET /agents/session/get": "use",
    "POST /agents/session/get": "use",
    "POST /agents/session/delete": "use",
    "POST /agents/turn/create": "use",
    "GET /agents/turn/get": "use",
    "POST /agents/turn/get": "use",
    "GET /agents/step/get": "use",
    "POST /agents/step/get": "use",
    "POST /inference/chat_completion": "use",
    "POST /inference/completion": "use",
    "POST /inference/embeddings": "use",
    "GET /memory_banks/list": "use",
    "GET /memory_banks/get": "use",
    "POST /memory_banks/get": "use",
    "POST /memory_banks/register": "knowledge:write",
    "POST /memory/create": "knowledge:write",
    "GET /memory/list": "use",
    "GET /memory/get": "use",
    "POST /memory/get": "use",
    "POST /memory/insert": "knowledge:write",
    "POST /memory/update": "knowledge:write",
    "POST /memory/query": "use",
    "POST /memory/drop": "knowledge:write",
    "DELETE /memory/drop": "knowledge:write",
    "GET /memory/documents/get": "use",
    "POST /memory/documents/get": "use",
    "POST /memory/documents/delete": "knowledge:write",
    "DELETE /memory/documents/delete": "knowledge:write",
    "GET /health": None,
    "GET /models/list": "use",
    "GET /models/get": "use",
    "POST /models/get": "use",
    "POST /models/register": "registry:write",
    "GET /shields/list": "use",
    "GET /shields/get": "use",
    "POST /shields/get": "use",
    "POST /shields/register": "registry:write",
    "POST /safety/run_shield": "use",
    "GET /providers/list": "use",
    "GET /routes/list": "use",
    "POST /telemetry/log_event": "use",
    "GET /telemetry/get_trace": "use",
    "POST /telemetry/get_trace": "use",
    "GET /batch_inference/{method:path}": "use",
    "POST /batch_inference/{method:path}": "use",
    "GET /datasets/{method:path}": "use",
    "POST /datasets/{method:path}": "use",
    "GET /evaluate/{method:path}": "use",
    "POST /evaluate/{method:path}": "use",
    "GET /post_training/{method:path}": "use",
    "POST /post_training/{method:path}": "use",
    "GET /reward_scoring/{method:path}": "use",
    "POST /reward_scoring/{method:path}": "use",
    "GET /synthetic_data_generation/{method:path}": "use",
    "POST /synthetic_data_generation/{method:path}": "use",
}
"""The scope of each route, by its method and path. None: the route is open. A route that is not here is closed.

Vector stores and vector dbs are shared by a tenant: their contents get into the answers of all its callers.
"""

RETRIED_PATHS = frozenset(
    {
        "/v1/agents",
        "/v1/agents/{agent_id}/session",
        "/v1/agents/{agent_id}/session/{session_id}/turn",
        "/v1/conversations",
        "/v1/responses",
        "/agents/create",
        "/agents/session/create",
        "/agents/turn/create",
    }
)
"""Paths whose POST creates something that a client's retry finds."""

KEYED_PATHS = RETRIED_PATHS | {
    "/v1/admin/keys",
    "/v1/chat/completions",
    "/v1/containers",
    "/v1/conversations/{conversation_id}/items",
    "/v1/files",
    "/v1/uploads",
    "/v1/uploads/{upload_id}/parts",
    "/v1/vector_stores",
    "/v1/vector_stores/{vector_store_id}/file_batches",
    "/memory/create",
}
"""Paths whose POST creates something with the id in the record of its idempotency key."""

FOLLOWED_PATHS = frozenset(
    {
        "/v1/agents/{agent_id}/session/{session_id}/turn",
        "/v1/agents/{agent_id}/session/{session_id}/turn/{turn_id}/resume",
        "/v1/responses",
        "/agents/turn/create",
    }
)
"""Paths whose POST begins a run that repetitions with its idempotency key follow while it runs."""

READING_PATHS = frozenset(
    {
        "/v1/vector_stores/{vector_store_id}/search",
        "/v1/vector-io/query",
        "/v1/tool-runtime/rag-tool/query",
        "/agents/session/get",
        "/agents/turn/get",
        "/agents/step/get",
        "/memory_banks/get",
        "/memory/get",
        "/memory/query",
        "/memory/documents/get",
        "/models/get",
        "/shields/get",
        "/telemetry/get_trace",
    }
)
"""Paths whose POST only reads. Their answers have contents of others' objects, and are not remembered."""

OPEN_PATHS = frozenset(route.partition(" ")[2] for route, scope in ROUTE_SCOPES.items() if scope is None)


def check_scope(path: str, scope: ASGIScope) -> None:
    """Check that the caller may use the route with a path. Raises Unauthenticated, or Forbidden."""
    route = f"{scope['method']} {path}"
    if route not in ROUTE_SCOPES:
        raise Forbidden(f"The route {route} is not in the table of scopes, so nobody may use it.")
    needed = ROUTE_SCOPES[route]
    if needed is None:
        return
    require_scope(needed)
    if END_USER_HEADER in Headers(scope=scope):
        require_scope("users:act")
