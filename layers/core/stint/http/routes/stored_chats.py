"""Routes of stored chat completions."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from stint.domain.openai.chat_output import ChatCompletion
from stint.domain.openai.stored_chats import (
    ChatCompletionList,
    ChatMessageList,
    CompletionsWithInputMessages,
    CompletionWithInputMessages,
    DeletedChatCompletion,
    UpdateChatCompletion,
)
from stint.http.dependencies import is_llama_stack_address
from stint.http.inference_dependencies import InferenceServicesDep
from stint.http.json_responses import document
from stint.http.list_params import Limit, Order
from stint.http.metadata_filters import METADATA_PARAMETER, MetadataFilter
from stint.http.requests import StrictRoute
from stint.http.scopes import requires

CHATS = "/v1/chat/completions"
CHAT = CHATS + "/{completion_id}"

router = APIRouter(tags=["Chat"], route_class=StrictRoute)


@router.get(CHATS, response_model=ChatCompletionList, openapi_extra=METADATA_PARAMETER)
@requires("use")
async def list_chat_completions(
    request: Request,
    services: InferenceServicesDep,
    limit: Limit,
    metadata: MetadataFilter,
    after: str | None = None,
    model: str | None = None,
    order: Annotated[Order | None, Query(description="asc; at /v1/openai/v1, desc")] = None,
) -> Response:
    """List stored completions, in whole or those with metadata.

    At /v1/openai/v1 they have their `input_messages`, as in Llama Stack.
    """
    ours = not is_llama_stack_address(request)
    found = await services.stored_chats.list(after, limit, model, metadata, order=order or ("asc" if ours else "desc"))
    if ours:
        return document(ChatCompletionList.of([each.completion for each in found.data], found.has_more))
    entries = [CompletionWithInputMessages.of(each) for each in found.data]
    return document(CompletionsWithInputMessages.of(entries, found.has_more))


@router.get(CHAT, response_model=ChatCompletion)
@requires("use")
async def get_chat_completion(completion_id: str, request: Request, services: InferenceServicesDep) -> Response:
    """Read a stored completion. At /v1/openai/v1 it has its `input_messages`, as in Llama Stack."""
    stored = await services.stored_chats.get(completion_id)
    return document(CompletionWithInputMessages.of(stored) if is_llama_stack_address(request) else stored.completion)


@router.post(CHAT, response_model=ChatCompletion)
@requires("use")
async def update_chat_completion(
    completion_id: str, body: UpdateChatCompletion, services: InferenceServicesDep
) -> Response:
    """Replace the metadata of a stored completion."""
    return document(await services.stored_chats.update(completion_id, body))


@router.delete(CHAT, response_model=DeletedChatCompletion)
@requires("use")
async def delete_chat_completion(completion_id: str, services: InferenceServicesDep) -> Response:
    """Delete a stored completion."""
    return document(await services.stored_chats.delete(completion_id))


@router.get(CHAT + "/messages", response_model=ChatMessageList)
@requires("use")
async def list_chat_messages(
    completion_id: str,
    services: InferenceServicesDep,
    limit: Limit,
    after: str | None = None,
    order: Order = "asc",
) -> Response:
    """List the messages of a stored completion's request."""
    return document(await services.stored_chats.messages(completion_id, after, limit, order))
