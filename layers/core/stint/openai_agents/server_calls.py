"""Items of the calls that this server runs: as they start, and with their results."""

from typing import Any

from stint.domain.content import text_of
from stint.domain.ids import item_name
from stint.domain.tools import DENIED, ToolCall, ToolResponse
from stint.openai_agents.contents import from_result
from stint.openai_agents.schemas.items import (
    AgentCodeCall,
    AgentFileSearchCall,
    AgentImageCall,
    AgentMcpCall,
    AgentSearchAction,
    AgentWebSearchCall,
)
from stint.tools.port import CODE_GROUP, IMAGE_GROUP, RAG, WEB_SEARCH_GROUP

ServerCall = AgentMcpCall | AgentWebSearchCall | AgentFileSearchCall | AgentCodeCall | AgentImageCall


def open_call(call: ToolCall, label: str, turn_id: str, step_id: str, place: int) -> ServerCall:
    """Return the item of a call that starts, at a place in the answer with the id `step_id`."""

    def common(prefix: str) -> dict[str, Any]:
        return {"id": item_name(prefix, step_id, place), "turn_id": turn_id}

    arguments = call.arguments
    if isinstance(arguments, dict):
        if label == WEB_SEARCH_GROUP:
            query = str(arguments.get("query", ""))
            return AgentWebSearchCall(**common("ws"), action=AgentSearchAction(query=query, queries=[query]))
        if label == RAG:
            from stint.services.responses.search_items import queries_of  # noqa: PLC0415 - few turns search files

            return AgentFileSearchCall(**common("fs"), queries=queries_of(arguments))
        if label == CODE_GROUP:
            code = arguments.get("code")
            return AgentCodeCall(**common("ci"), code=code if isinstance(code, str) else "")
        if label == IMAGE_GROUP:
            return AgentImageCall(**common("ig"))
    return AgentMcpCall(**common("mcp"), server_label=label, name=call.tool_name, arguments=arguments)


def finish_call(item: ServerCall, call: ToolCall, response: ToolResponse) -> ServerCall:
    """Return the item of a call with its result."""
    failed = is_failed(response)
    changes: dict[str, Any] = {"status": "failed" if failed else "completed"}
    match item:
        case AgentMcpCall():
            text = text_of(response.content)
            if failed or text.startswith(DENIED):
                changes = {"status": "failed", "error": text}
            else:
                changes["output"] = from_result(response.content)
        case AgentWebSearchCall():
            changes = {"status": "incomplete" if failed else "completed"}
        case AgentFileSearchCall():
            from stint.services.responses.search_items import results_of  # noqa: PLC0415 - few turns search files

            changes["results"] = [] if failed else results_of(response)
        case AgentCodeCall():
            from stint.services.responses.code_runs import outputs_of  # noqa: PLC0415 - few turns run code

            changes["outputs"] = outputs_of(response)
        case AgentImageCall():
            changes |= image_fields(call, response)
    return item.model_copy(update=changes)


def image_fields(call: ToolCall, response: ToolResponse) -> dict[str, Any]:
    """Return the fields of an image that was generated, or could not be."""
    from stint.services.responses.image_items import FORMATS  # noqa: PLC0415 - few turns generate images

    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    prompt = arguments.get("query", arguments.get("prompt"))
    image, properties = response.generated_image, response.image_properties
    return {
        "status": "failed" if image is None else "completed",
        "result": image,
        "revised_prompt": properties.get("revised_prompt") or (prompt if isinstance(prompt, str) else None),
        "output_format": FORMATS.get(properties.get("media_type", "")),
    }


def is_failed(response: ToolResponse) -> bool:
    return bool((response.metadata or {}).get("error"))
