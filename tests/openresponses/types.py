"""Checks of responses against the types of the `openai` package, which its own client does not enforce."""

from functools import cache
from typing import Any, get_args

from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionDeleted
from openai.types.conversations import Conversation, ConversationDeletedResource
from openai.types.responses import CompactedResponse, Response, ResponseItem, ResponseStreamEvent
from openai.types.responses.input_token_count_response import InputTokenCountResponse
from pydantic import BaseModel, TypeAdapter, ValidationError
from tests.openresponses.schema import Json, Mismatch

# The package lists OpenAI's own codes and reasons. Other servers have others, which the client shows unchanged.
OPEN_WORDS = ("error", "incomplete_details")
CLASSES: dict[str, type[BaseModel]] = {
    "response.compaction": CompactedResponse,
    "response.input_tokens": InputTokenCountResponse,
    "conversation": Conversation,
    "conversation.deleted": ConversationDeletedResource,
    "chat.completion": ChatCompletion,
    "chat.completion.deleted": ChatCompletionDeleted,
    "chat.completion.chunk": ChatCompletionChunk,
}


def check_openai_object(name: str, body: Json) -> None:
    """Raise Mismatch if an object does not match the package's type of this name."""
    _check(_adapter(CLASSES[name]), name, body)


def check_openai_response(body: Json) -> None:
    """Raise Mismatch if a response does not match the package's Response."""
    _check(_adapter(Response), "Response", {**body, **dict.fromkeys(OPEN_WORDS)})


def check_openai_item(item: Json) -> None:
    """Raise Mismatch if an item matches none of the package's types."""
    _check(_adapter(ResponseItem), f"item {item.get('type')}", item)


def check_openai_event(event: Json) -> None:
    """Raise Mismatch if an event is unknown to the package or does not match its type."""
    name = event["type"]
    if name not in event_types():
        raise Mismatch(f"{name} is not an event that OpenAI's clients know")
    if isinstance(event.get("response"), dict):
        event = {**event, "response": {**event["response"], **dict.fromkeys(OPEN_WORDS)}}
    _check(_adapter(event_types()[name]), name, event)


@cache
def event_types() -> dict[str, type[BaseModel]]:
    """Return the class of each event type."""
    union, *_ = get_args(ResponseStreamEvent)
    return {get_args(each.model_fields["type"].annotation)[0]: each for each in get_args(union)}


@cache
def _adapter(kind: object) -> TypeAdapter[Any]:
    Response.model_rebuild()  # once: the package defers it, so each type that contains a response would do it again
    return TypeAdapter(kind)


def _check(adapter: TypeAdapter[Any], name: str, value: Json) -> None:
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        raise Mismatch(f"{name} of the openai package: {_explain(error)[:900]}") from None


def _explain(error: ValidationError) -> str:
    """Return the errors, except those of union members with a different type."""
    details = error.errors(include_url=False, include_context=False)
    other = [each["loc"][:-1] for each in details if each["type"] == "literal_error" and each["loc"][-1] == "type"]
    near = [each for each in details if not any(each["loc"][: len(place)] == place for place in other)]
    return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in near or details)
