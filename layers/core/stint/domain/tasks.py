"""Work for the worker function: what its queue carries."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from stint.domain.ids import TenantName
from stint.domain.schema import Schema


class DeletionTask(Schema):
    """Finish the deletion of a session, or of an agent with all its sessions."""

    kind: Literal["delete"] = "delete"
    tenant: TenantName
    agent_id: str
    session_id: str | None = None


class ResponseDeletionTask(Schema):
    """Finish the deletion of a response."""

    kind: Literal["delete_response"] = "delete_response"
    tenant: TenantName
    response_id: str


class ConversationDeletionTask(Schema):
    """Finish the deletion of a conversation."""

    kind: Literal["delete_conversation"] = "delete_conversation"
    tenant: TenantName
    conversation_id: str


class ResponseTask(Schema):
    """Run a background response that is stored."""

    kind: Literal["response"] = "response"
    tenant: TenantName
    response_id: str


AnyDeletionTask = DeletionTask | ResponseDeletionTask | ConversationDeletionTask
AnyTask = Annotated[AnyDeletionTask | ResponseTask, Field(discriminator="kind")]
TASK: TypeAdapter[AnyTask] = TypeAdapter(AnyTask)
"""Reads a message. A message proves nothing: what it names is deleted only if the table has it marked as deleted."""
