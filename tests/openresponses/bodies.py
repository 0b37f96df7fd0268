"""Checks of the bodies of the Responses API. Each check raises Mismatch."""

from collections.abc import Callable, Iterable

from tests.openresponses.schema import (
    HOSTED_EVENTS,
    HOSTED_ITEMS,
    REASONING_EVENTS,
    Json,
    Mismatch,
    check_component,
    document,
    event_components,
)
from tests.openresponses.types import check_openai_event, check_openai_item, check_openai_object, check_openai_response

COMPONENTS = {
    "message": "Message",
    "function_call": "FunctionCall",
    "function_call_output": "FunctionCallOutput",
    "reasoning": "ReasoningBody",
    "compaction": "CompactionBody",
}
STATUSES = ("queued", "in_progress", "completed", "incomplete", "failed", "cancelled")
TERMINAL = STATUSES[2:]
MADE_BY_MODELS = ("message", "function_call", "reasoning", "compaction")


def check_item(item: Json) -> None:
    """Check an item in a response against Open Responses, if it knows the type, and OpenAI's types."""
    require(isinstance(item.get("id"), str) and item["id"] != "", f"An item has no id: {item}")
    check_component(COMPONENTS.get(str(item.get("type")), "ItemField"), item)
    if item["type"] != "message" or item["role"] != "developer":  # OpenAI's type of input messages lacks the role
        check_openai_item(item)


def check_output(output: list[Json], tools: list[Json]) -> None:
    """Check that the output has only items of the model and of these tools, which the request named."""
    hosted = {name for tool in tools for name in HOSTED_ITEMS.get(tool["type"], ())}
    if any(tool.get("require_approval") == "always" for tool in tools):
        hosted.add("mcp_approval_request")
    for item in output:
        check_item(item)
        expected = item["type"] in MADE_BY_MODELS or item["type"] in hosted
        require(expected, f"Item {item['id']} in the output is a {item['type']}, which no tool of the request brings")
    check_distinct("Item ids in the output", [item["id"] for item in output])


def check_response(body: Json) -> None:
    """Check a response of any status."""
    for item in body.get("output") or []:
        check_item(item)
    check_component("ResponseResource", body)
    check_openai_response(body)
    check_output(body["output"], body["tools"])
    _check_status(body)
    error = body["error"]
    if error is not None:
        strings = all(isinstance(error.get(key), str) for key in ("code", "message", "type"))
        require(strings, f"The response's error needs a code, a message and a type: {error}")


def _check_status(body: Json) -> None:
    status = body["status"]
    require(status in STATUSES, f"A response's status is never {status!r}")
    require((body["completed_at"] is not None) == (status == "completed"), f"completed_at does not go with {status}")
    require((body["incomplete_details"] is not None) == (status == "incomplete"), f"incomplete_details with {status}")
    require((body["error"] is not None) == (status == "failed"), f"error {body['error']} does not go with {status}")
    require(status != "completed" or body["usage"] is not None, "A completed response has no usage")
    open_items = [item["id"] for item in body["output"] if item.get("status") == "in_progress"]
    require(status not in TERMINAL or not open_items, f"Items {open_items} are in progress in a {status} response")


def check_request(body: Json) -> None:
    """Check the body of "Create a response". What Open Responses does not know, a strict server refuses."""
    check_component("CreateResponseBody", body)
    known = document()["components"]["schemas"]["CreateResponseBody"]["properties"]
    require(set(body) <= set(known), f"Open Responses has no {sorted(set(body) - set(known))}")
    check_distinct("Ids of items in the input", [item["id"] for item in body["input"] if "id" in item])


def check_event(event: Json, response: Json | None) -> None:
    """Check an event of a response's stream, and its fit to the tools and the reasoning of `response` if known."""
    name = str(event.get("type"))
    if name in event_components():
        check_component(event_components()[name], event)
    elif response is not None:
        hosted = [start for tool in response["tools"] for start in HOSTED_EVENTS.get(tool["type"], ())]
        asked = name.startswith(tuple(hosted)) or (name in REASONING_EVENTS and response["reasoning"] is not None)
        require(asked, f"Event {name} is neither of Open Responses nor of anything that the request asked for")
    check_openai_event(event)
    if "response" in event:
        check_response(event["response"])
    if name == "error":
        same = all(event.get(key) == event["error"][key] for key in ("code", "message", "param"))
        require(same, f"An error event is flat and nested at once: {event}")


def check_error(body: Json) -> None:
    """Check an error body. `code` must be a string, because one client does not show the message otherwise."""
    error = body.get("error")
    require(isinstance(error, dict), f"A refusal has no error object: {body}")
    assert isinstance(error, dict)
    for key in ("message", "type", "code"):
        require(isinstance(error.get(key), str) and error[key] != "", f"A refusal's {key} is no text: {error}")
    require(error.get("param") is None or isinstance(error["param"], str), f"A refusal's param is no text: {error}")


def check_compaction(body: Json) -> None:
    """Check the response of /responses/compact.

    The `openai` package documents that its output begins with the user's messages, but has types for the assistant's
    only.
    """
    check_component("CompactResource", body)
    typed = [item for item in body["output"] if item.get("role") != "user"]
    check_openai_object("response.compaction", body | {"output": typed})
    for item in body["output"]:
        check_item(item)
    require(any(item["type"] == "compaction" for item in body["output"]), "A compaction without a compaction item")


def check_page(body: Json, check: Callable[[Json], None]) -> None:
    """Check a page of a list: its data and its cursors."""
    require(body.get("object") == "list" and isinstance(body.get("data"), list), f"Not a list: {str(body)[:300]}")
    require(isinstance(body.get("has_more"), bool), "A list does not say whether it has more")
    for each in body["data"]:
        check(each)
    ids = [each["id"] for each in body["data"]]
    check_distinct("Ids in a list", ids)
    ends = (ids[0], ids[-1]) if ids else (None, None)
    have = (body.get("first_id"), body.get("last_id"))
    require(have == ends or (not ids and have == ("", "")), f"first_id and last_id are {have}, not {ends}")


def check_item_list(body: Json) -> None:
    """Check a page of input items or of a conversation's items."""
    check_page(body, check_item)


def check_response_list(body: Json) -> None:
    """Check a page of responses."""
    check_page(body, check_response)


def check_conversation(body: Json) -> None:
    """Check a conversation."""
    check_openai_object("conversation", body)


def check_conversation_list(body: Json) -> None:
    """Check a page of conversations."""
    check_page(body, check_conversation)


def check_deleted_conversation(body: Json) -> None:
    """Check the response to the deletion of a conversation."""
    check_openai_object("conversation.deleted", body)
    require(body["deleted"] is True, f"Deleted, and yet not: {body}")


def check_deleted_response(body: Json) -> None:
    """Check the response to the deletion of a response."""
    good = body.get("deleted") is True and body.get("object") in ("response", "response.deleted")
    require(good and isinstance(body.get("id"), str), f"Not the answer to a deletion: {body}")


def check_heartbeat(body: Json) -> None:
    """Check the response to a heartbeat, which only Stint has."""
    numbers = [body["interval_seconds"], body["timeout_seconds"]]
    require(numbers == sorted(numbers) and numbers[0] > 0, f"Not the answer to a heartbeat: {body}")


def check_steps(body: Json) -> None:
    """Check a list of steps, which only Stint has."""
    kinds = {(step["object"], step["type"] in ("model_call", "tool_call", "compaction")) for step in body["data"]}
    require(body["object"] == "list" and kinds <= {("response.step", True)}, f"Not a list of steps: {body}")


def check_trace(body: Json) -> None:
    """Check the trace of a response, which only Stint has."""
    require(body.keys() == {"resourceSpans"}, f"Not a trace: {body}")


def check_model_input(body: Json) -> None:
    """Check the input of a model call, which only Stint has."""
    require(body["object"] == "model_input" and isinstance(body["messages"], list), f"Not an input: {body}")


def check_input_tokens(body: Json) -> None:
    """Check the response of /responses/input_tokens."""
    check_openai_object("response.input_tokens", body)


def check_chat_completion(body: Json) -> None:
    """Check the response of /chat/completions."""
    check_openai_object("chat.completion", body)


def check_chat_completion_list(body: Json) -> None:
    """Check a page of stored chat completions."""
    check_page(body, check_chat_completion)


def check_deleted_chat_completion(body: Json) -> None:
    """Check the response to the deletion of a chat completion."""
    check_openai_object("chat.completion.deleted", body)
    require(body["deleted"] is True, f"Deleted, and yet not: {body}")


def check_chat_message_list(body: Json) -> None:
    """Check a page of the messages of a stored chat completion."""
    check_page(body, lambda message: require(bool(message["role"]), f"A message without a role: {message}"))


def check_distinct(what: str, values: Iterable[str]) -> None:
    """Raise Mismatch if there is a duplicate."""
    values = list(values)
    twice = sorted({value for value in values if values.count(value) > 1})
    require(not twice, f"{what} are there more than once: {twice}")


def require(holds: bool, otherwise: str) -> None:
    """Raise Mismatch unless the condition is true."""
    if not holds:
        raise Mismatch(otherwise)
