"""Routes of conversations."""

from functools import partial

from fastapi import APIRouter, Request, Response

from stint.domain.ids import name_of
from stint.domain.openai.conversations import (
    Conversation,
    ConversationList,
    CreateConversation,
    CreateItems,
    DeletedConversation,
    UpdateConversation,
)
from stint.domain.openai.items import Item
from stint.domain.openai.response_resource import ItemList
from stint.http.direct_calls import check_fields
from stint.http.json_responses import document
from stint.http.list_params import Included, Limit, Order
from stint.http.openai_dependencies import OpenAIServicesDep
from stint.http.requests import StrictRoute
from stint.http.scopes import OBJECT, RETRIED, requires

CONVERSATIONS = "/v1/conversations"
CONVERSATION = CONVERSATIONS + "/{conversation_id}"
ITEMS = CONVERSATION + "/items"
ITEM = ITEMS + "/{item_id}"


router = APIRouter(tags=["Conversations"], route_class=StrictRoute)


@router.post(CONVERSATIONS, response_model=Conversation)
@requires("use", repeated=RETRIED)
async def create_conversation(services: OpenAIServicesDep, body: CreateConversation | None = None) -> Response:
    """Create a conversation, with its first items."""
    create = partial(services.conversations.create, body or CreateConversation())
    return document(
        await services.creations.run(
            lambda object_id: services.conversations.get(name_of("conv", object_id)),
            lambda object_id: create(name_of("conv", object_id)),
        )
    )


@router.get(CONVERSATIONS, response_model=ConversationList)
@requires("use")
async def list_conversations(
    services: OpenAIServicesDep, limit: Limit, after: str | None = None, order: Order = "desc"
) -> Response:
    """List conversations, the newest first."""
    return document(await services.conversations.list(after, limit, order))


@router.get(CONVERSATION, response_model=Conversation)
@requires("use")
async def get_conversation(conversation_id: str, services: OpenAIServicesDep) -> Response:
    """Read a conversation, without its items."""
    return document(await services.conversations.get(conversation_id))


@router.post(CONVERSATION, response_model=Conversation)
@requires("use")
async def update_conversation(conversation_id: str, body: UpdateConversation, services: OpenAIServicesDep) -> Response:
    """Replace the metadata of a conversation."""
    return document(await services.conversations.update(conversation_id, body))


@router.delete(CONVERSATION, response_model=DeletedConversation)
@requires("use")
async def delete_conversation(conversation_id: str, services: OpenAIServicesDep) -> Response:
    """Delete a conversation with its items."""
    return document(await services.conversations.delete(conversation_id))


@router.post(ITEMS, response_model=ItemList)
@requires("use", repeated=OBJECT)
async def create_conversation_items(
    conversation_id: str, body: CreateItems, request: Request, services: OpenAIServicesDep, include: Included
) -> Response:
    """Add items to a conversation. Each gets a new id."""
    check_fields(await request.json(), body, request)
    return document(await services.conversations.add_items(conversation_id, body.items, include))


@router.get(ITEMS, response_model=ItemList)
@requires("use")
async def list_conversation_items(
    conversation_id: str,
    services: OpenAIServicesDep,
    include: Included,
    limit: Limit,
    after: str | None = None,
    order: Order = "desc",
) -> Response:
    """List the items of a conversation, the newest first."""
    return document(await services.conversations.list_items(conversation_id, after, limit, order, include=include))


@router.get(ITEM, response_model=Item)
@requires("use")
async def get_conversation_item(
    conversation_id: str, item_id: str, services: OpenAIServicesDep, include: Included
) -> Response:
    """Read an item of a conversation."""
    return document(await services.conversations.get_item(conversation_id, item_id, include))


@router.delete(ITEM, response_model=Conversation)
@requires("use")
async def delete_conversation_item(conversation_id: str, item_id: str, services: OpenAIServicesDep) -> Response:
    """Delete an item, and return its conversation."""
    return document(await services.conversations.delete_item(conversation_id, item_id))
