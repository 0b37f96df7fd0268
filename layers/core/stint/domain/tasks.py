"""Work that is left to the worker function."""

from typing import Literal

from stint.domain.schema import Schema


class DeletionTask(Schema):
    """Finish the deletion of a session, or of an agent with all its sessions; what it names is marked already."""

    task: Literal["delete"] = "delete"
    tenant: str
    agent_id: str
    session_id: str | None = None


class ResponseDeletionTask(Schema):
    """Finish the deletion of a response that is marked already."""

    task: Literal["delete_response"] = "delete_response"
    tenant: str
    response_id: str


class ConversationDeletionTask(Schema):
    """Finish the deletion of a conversation that is marked already."""

    task: Literal["delete_conversation"] = "delete_conversation"
    tenant: str
    conversation_id: str


AnyDeletionTask = DeletionTask | ResponseDeletionTask | ConversationDeletionTask


class ResponseTask(Schema):
    """Run a background response that is stored: what the queue carries."""

    kind: Literal["response"] = "response"
    tenant: str
    response_id: str
