"""What the events of `events/responses` name: a conversation with a message, a response, and two in the background:
one that waits for the worker, and one that has ended. Of those that are deleted, one of each is marked already."""

import contextlib
from datetime import datetime

from infra.local.sample_ids import (
    BACKGROUND_RESPONSE,
    CONVERSATION,
    CONVERSATION_ITEM,
    DELETED_CONVERSATION,
    DELETED_RESPONSE,
    QUEUED_RESPONSE,
    RESPONSE,
)

from stint.domain.errors import NotFound
from stint.domain.inference import Usage
from stint.domain.openai.conversations import Conversation, StoredItem
from stint.domain.openai.items import Message
from stint.domain.openai.parts import InputText
from stint.domain.openai.stored_responses import ResponseHeader, ResponseOutcome, ResponseRecord, ResponseStatus
from stint.domain.steps import CompletionMessage, InferenceStep
from stint.http.dependencies import TENANT
from stint.store.conversations import ConversationStore
from stint.store.response_store import ResponseStore
from stint.store.responses import Responses

STARTED = datetime.fromisoformat("2025-08-31T12:00:00+00:00")
SECONDS = int(STARTED.timestamp())
MESSAGE = Message(id=CONVERSATION_ITEM, role="user", content=[InputText(text="My name is Ada.")])


def store_response_samples(store: ResponseStore) -> None:
    """Store the samples, in place of what events made of them; nothing of the responses may be left."""
    for conversation_id in (CONVERSATION, DELETED_CONVERSATION):
        store_conversation(store.conversations, conversation_id)
    store.conversations.mark_deleted(TENANT, DELETED_CONVERSATION)
    store_response(store.responses, RESPONSE)
    store_response(store.responses, BACKGROUND_RESPONSE, background=True)
    begin_response(store.responses, QUEUED_RESPONSE, background=True)
    store_response(store.responses, DELETED_RESPONSE)
    store.responses.mark_deleted(TENANT, DELETED_RESPONSE)


def store_conversation(conversations: ConversationStore, conversation_id: str) -> None:
    with contextlib.suppress(NotFound):
        conversations.mark_deleted(TENANT, conversation_id)
        conversations.delete(TENANT, conversation_id)
    conversation = Conversation(id=conversation_id, created_at=SECONDS, metadata={"topic": "names"})
    conversations.create(TENANT, conversation, [StoredItem(item=MESSAGE)])


def begin_response(responses: Responses, response_id: str, *, background: bool) -> None:
    header = ResponseHeader(
        response_id=response_id, created_at=SECONDS, model="scripted/demo", input=[MESSAGE], background=background
    )
    responses.put(TENANT, header)


def store_response(responses: Responses, response_id: str, *, background: bool = False) -> None:
    begin_response(responses, response_id, background=background)
    step = InferenceStep(
        turn_id=response_id,
        step_id="01990000-0005-7000-8000-000000000001",
        started_at=STARTED,
        completed_at=STARTED,
        model_response=CompletionMessage(content="Hello, Ada."),
    )
    usage = Usage(input_tokens=4, output_tokens=2, total_tokens=6)
    ending = ResponseOutcome(status=ResponseStatus.completed, completed_at=SECONDS, usage=usage)
    responses.append(TENANT, response_id, 0, ResponseRecord(step=step, ending=ending))
