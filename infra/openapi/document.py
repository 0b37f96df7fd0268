"""The OpenAPI document of the whole API, made from the routes of all functions.

It takes seconds, so it is built once: `make openapi` writes docs/openapi.json, which is in the package by a link.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

from fastapi import APIRouter, FastAPI
from infra.openapi.commands import add_commands
from infra.openapi.examples import add_examples
from pydantic import BaseModel, RootModel

from stint.ag_ui.schemas.events import AgUiEvent
from stint.domain.llama_stack.inference import ChatCompletionResponseStreamChunk, CompletionResponseStreamChunk
from stint.domain.llama_stack.registry import LLAMA_STACK_VERSION
from stint.domain.openai.chat_output import ChatCompletionChunk
from stint.domain.openai.response_events import ResponseEvent
from stint.domain.traces import TraceDocument
from stint.http.deferred_imports import NO_TELEMETRY
from stint.http.errors import ErrorResponse
from stint.http.requests import LazyRoute, scoped_routes
from stint.http.routes.inspection import BUILT_URL, OPENAI, list_parts
from stint.http.routes.turns import StreamChunk
from stint.http.sse import StreamError
from stint.openai_agents.schemas.stream_events import AgentStreamEvent

ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorResponse, "description": "The request is invalid."},
    "5XX": {"model": ErrorResponse, "description": "The server, or a model's provider, failed."},
}
DESCRIPTION = """\
Three APIs over one agent loop.

* **Llama Stack's Agents API**, below `/v1`: agents, sessions, turns, tools, shields, models.
  Set `base_url` of `llama-stack-client` to the server's URL.
* **OpenAI's API**, below `/v1` and, as in Llama Stack, `/v1/openai/v1`: responses, conversations,
  chat completions, models. Set `base_url` of `openai` to either address.
* **OpenAI's Agents API**, below `/v1/agents/sessions`, and at `/v1/agents` with the header
  `OpenAI-Beta: agents=v1`, which `client.beta.agents` of `openai` sends.
"""
LLAMA_STACK_API, OPENAI_API = "Llama Stack's Agents API", "OpenAI's API"
TAGS = [
    {"name": "Agents", "description": f"{LLAMA_STACK_API}: agents."},
    {"name": "Sessions", "description": f"{LLAMA_STACK_API}: sessions of an agent."},
    {"name": "Turns", "description": f"{LLAMA_STACK_API}: turns of a session, streamed or not, and their steps."},
    {"name": "Inference", "description": f"{LLAMA_STACK_API}: inference without an agent, streamed or not."},
    {"name": "Tools", "description": f"{LLAMA_STACK_API}: toolgroups, their tools, and the tool runtime."},
    {"name": "Shields", "description": f"{LLAMA_STACK_API}: shields."},
    {
        "name": "Registry",
        "description": f"{LLAMA_STACK_API}: models (also for OpenAI's API), providers, health, version.",
    },
    {
        "name": "Vector DBs",
        "description": "Llama Stack: vector databases, their chunks, and the tool that retrieves context from them.",
    },
    {"name": "Responses", "description": f"{OPENAI_API}: responses, at /v1 and at /v1/openai/v1."},
    {"name": "Conversations", "description": f"{OPENAI_API}: conversations, at /v1 and at /v1/openai/v1."},
    {"name": "Chat", "description": f"{OPENAI_API}: chat completions, at /v1 and at /v1/openai/v1."},
    {"name": "OpenAI Agents", "description": "OpenAI's Agents API: sessions, their events, turns and items."},
    {"name": "MCP", "description": "The Model Context Protocol: each agent is a tool (docs/protocols.md)."},
    {"name": "A2A", "description": "Agent2Agent: each agent has a card, and its turns are tasks (docs/protocols.md)."},
    {"name": "AG-UI", "description": "Agent-User Interaction: a run of an agent, as its events (docs/protocols.md)."},
    {"name": "Embeddings", "description": "Embeddings of both APIs; OpenAI's at /v1 and at /v1/openai/v1."},
    {"name": "Files", "description": f"{OPENAI_API}: files, at /v1 and at /v1/openai/v1."},
    {"name": "Containers", "description": f"{OPENAI_API}: containers of code, at /v1 and at /v1/openai/v1."},
    {"name": "Administration", "description": "API keys and stops, for callers with the scope `admin`."},
    {"name": "Webhooks", "description": f"{OPENAI_API}: webhook endpoints, for callers with `webhooks:write`."},
    {"name": "End users", "description": "What belongs to end users, for callers with the scope `admin`."},
    {"name": "Vector stores", "description": f"{OPENAI_API}: vector stores, at /v1 and at /v1/openai/v1."},
]
SCHEMES = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key (`stk_...`) or a token of the configured OIDC issuer.",
    }
}


class ResponseStreamEvent(RootModel[ResponseEvent]):
    """The data of an event."""


class AgUiRunEvent(RootModel[AgUiEvent]):
    """An event of a run of AG-UI."""


class AgentSessionEvent(RootModel[AgentStreamEvent]):
    """The data of an event of a session of OpenAI's Agents API."""


NAMED: tuple[type[BaseModel], ...] = (
    StreamChunk,
    StreamError,
    ResponseStreamEvent,
    AgUiRunEvent,
    AgentSessionEvent,
    TraceDocument,
    ChatCompletionChunk,
    ChatCompletionResponseStreamChunk,
    CompletionResponseStreamChunk,
)
"""What routes refer to by its name: the data of all streams' events, and traces."""


@cache
def describe_api() -> dict[str, Any]:
    """Make the OpenAPI document, with the servers at BUILT_URL. Operations are named after their functions."""
    app = FastAPI(
        telemetry=NO_TELEMETRY,
        title="Stint",
        version=LLAMA_STACK_VERSION,
        summary="Llama Stack's Agents API 0.2.12 and OpenAI's Responses API, on AWS.",
        description=DESCRIPTION,
        openapi_tags=TAGS,
        generate_unique_id_function=lambda route: route.name,
        separate_input_output_schemas=False,
    )
    for part in list_parts():
        app.include_router(part, responses=ERRORS)
    described = app.openapi()
    for schema in NAMED:
        described["components"]["schemas"] |= schemas_of(schema)
    add_examples(described)
    add_security(described, list_parts())
    add_servers(described)
    add_commands(described)
    return described


def add_servers(described: dict[str, Any]) -> None:
    """Add the servers to a document. The operations of OpenAI's API have two paths."""
    own = {"url": BUILT_URL, "description": "All APIs"}
    alias = {"url": f"{BUILT_URL}/v1/openai", "description": "OpenAI's API at Llama Stack's address, /v1/openai/v1"}
    described["servers"] = [own]
    for path, item in described["paths"].items():
        if path.startswith(OPENAI):
            for operation in item.values():
                operation["servers"] = [own, alias]


def schemas_of(schema: type[BaseModel]) -> dict[str, Any]:
    """Return the schemas of a class and its parts as components."""
    described = schema.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**described.pop("$defs", {}), schema.__name__: described}


def add_security(described: dict[str, Any], routers: Iterable[APIRouter]) -> None:
    """Add the security scheme to a document, and to each operation the scope that it needs."""
    described["components"]["securitySchemes"] = SCHEMES
    described["security"] = [{"bearer": []}]
    for route in (each for router in routers for each in scoped_routes(router)):
        if isinstance(route, LazyRoute) and route.include_in_schema:
            for method in route.methods or ():
                operation = described["paths"][route.path_format][method.lower()]
                if route.rule.scope is None:
                    operation["security"] = []
                else:
                    operation["x-required-scope"] = route.rule.scope
