"""The schema of Open Responses, with intentional deviations."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from tests.openresponses.compiled import Compiler

Json = dict[str, Any]

WEB_SEARCH = ("web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11")
# Additional types of items in the output, by the type of the request's tool.
HOSTED_ITEMS = {
    "mcp": ("mcp_list_tools", "mcp_call", "mcp_approval_request"),
    **dict.fromkeys(WEB_SEARCH, ("web_search_call",)),
    "file_search": ("file_search_call",),
    "image_generation": ("image_generation_call",),
    "code_interpreter": ("code_interpreter_call",),
}
# Prefixes of the events of these items.
HOSTED_EVENTS = {
    "mcp": ("response.mcp_list_tools.", "response.mcp_call.", "response.mcp_call_arguments."),
    **dict.fromkeys(WEB_SEARCH, ("response.web_search_call.",)),
    "file_search": ("response.file_search_call.",),
    "image_generation": ("response.image_generation_call.",),
    "code_interpreter": ("response.code_interpreter_call.", "response.code_interpreter_call_code."),
}
# OpenAI's names for raw reasoning: openai-node throws on Open Responses' `response.reasoning.*`.
REASONING_EVENTS = ("response.reasoning_text.delta", "response.reasoning_text.done")


class Mismatch(AssertionError):
    """The exchange violates the contract."""


def echo_real_schemas(schemas: Json) -> None:
    """Allow objects in `text.format.schema`. Upstream allows only null, a mistake: clients expect their schema."""
    schemas["JsonSchemaResponseFormat"]["properties"]["schema"] = {"type": ["object", "null"]}


def admit_all_efforts(schemas: Json) -> None:
    """Allow OpenAI's two additional efforts, since a request's effort is echoed."""
    schemas["ReasoningEffortEnum"]["enum"] += ["minimal", "max"]


def admit_raw_reasoning(schemas: Json) -> None:
    """Allow reasoning itself in the input. Upstream allows null only, but its servers without encryption return it."""
    part = {"type": "object", "properties": {"type": {"enum": ["reasoning_text"]}}, "required": ["type", "text"]}
    content = {"anyOf": [{"type": "null"}, {"type": "array", "items": part}]}
    schemas["ReasoningItemParam"]["properties"]["content"] = content


def admit_json_objects(schemas: Json) -> None:
    """Allow OpenAI's format of any JSON object in requests. In responses, upstream has it."""
    schemas["TextFormatParam"]["oneOf"].append(_typed(["json_object"]))


def admit_hosted_items(schemas: Json) -> None:
    """Allow items of server-side tools in OpenAI's format. Another check requires that a request has the tool."""
    types = sorted({name for names in HOSTED_ITEMS.values() for name in names} | {"mcp_approval_response"})
    schemas["ItemField"]["oneOf"].append(_typed(types, "id"))


def admit_hosted_tools(schemas: Json) -> None:
    """Allow the tools of such items, which are echoed without credentials."""
    hidden: Json = {"not": {"anyOf": [{"required": [key]} for key in ("authorization", "headers")]}}
    schemas["Tool"]["oneOf"].append(_typed(["mcp"], "server_label") | hidden)
    schemas["Tool"]["oneOf"] += [_typed(list(WEB_SEARCH)), _typed(["file_search"], "vector_store_ids")]
    schemas["Tool"]["oneOf"].append(_typed(["image_generation"]))
    schemas["Tool"]["oneOf"].append(_typed(["code_interpreter"], "container"))
    choices = [
        _typed(["mcp"], "server_label"),
        _typed([*WEB_SEARCH, "file_search", "image_generation", "code_interpreter"]),
    ]
    schemas["ResponseResource"]["properties"]["tool_choice"]["oneOf"] += choices
    schemas["AllowedToolChoice"]["properties"]["tools"]["items"]["oneOf"] += choices


def admit_file_citations(schemas: Json) -> None:
    """Allow citations of files. Only responses that search files or run code have them."""
    schemas["Annotation"]["oneOf"].append(_typed(["file_citation"], "index", "file_id", "filename"))
    places = ("container_id", "file_id", "filename", "start_index", "end_index")
    schemas["Annotation"]["oneOf"].append(_typed(["container_file_citation"], *places))


DEVIATIONS: tuple[Callable[[Json], None], ...] = (
    echo_real_schemas,
    admit_all_efforts,
    admit_raw_reasoning,
    admit_json_objects,
    admit_hosted_items,
    admit_hosted_tools,
    admit_file_citations,
)


def _typed(types: list[str], *required: str) -> Json:
    return {"type": "object", "properties": {"type": {"enum": types}}, "required": ["type", *required]}


@cache
def document() -> Json:
    """Return the OpenAPI document with the deviations."""
    document: Json = json.loads((Path(__file__).parent / "openapi.json").read_text())
    for deviate in DEVIATIONS:
        deviate(document["components"]["schemas"])
    return document


@cache
def event_components() -> dict[str, str]:
    """Return the component of each event type."""
    operation = document()["paths"]["/responses"]["post"]
    union = operation["responses"]["200"]["content"]["text/event-stream"]["schema"]["oneOf"]
    names = [part["$ref"].rsplit("/", 1)[1] for part in union]
    schemas = document()["components"]["schemas"]
    return {schemas[name]["properties"]["type"]["enum"][0]: name for name in names}


@cache
def _registry() -> Registry[Any]:
    resource: Resource[Any] = Resource.from_contents(document(), default_specification=DRAFT202012)
    registry: Registry[Any] = Registry().with_resource("open-responses", resource)
    return registry


@cache
def _validator(component: str) -> Draft202012Validator:
    reference = {"$ref": f"open-responses#/components/schemas/{component}"}
    return Draft202012Validator(reference, registry=_registry())


@cache
def compiler() -> Compiler:
    """Return the components as functions."""
    return Compiler(document()["components"]["schemas"])


def find_error(component: str, value: object) -> str | None:
    """Return the place and the text of jsonschema's error, or None for a valid value."""
    error = best_match(_validator(component).iter_errors(value))
    return None if error is None else f"{error.json_path}: {error.message[:600]}"


def check_component(component: str, value: object) -> None:
    """Raise Mismatch, with the place, if a value violates a component."""
    if not compiler().component(component)(value):
        raise Mismatch(f"{component} of Open Responses, {find_error(component, value)}")
