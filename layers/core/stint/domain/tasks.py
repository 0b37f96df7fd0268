"""Tasks of the worker, which its queue delivers."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, TypeAdapter, model_validator

from stint.domain.fields import Omitted
from stint.domain.ids import TenantName
from stint.domain.schema import Schema

ObjectKind = Literal["agent", "session", "response", "conversation"]
"""The kinds of objects that a task can delete."""


class DeletionTask(Schema):
    """Finish the deletion of an object that is marked as deleted.

    `kind` and the ids are the format of the queue: during a deployment one version reads the messages of another.
    """

    kind: Literal["delete", "delete_response", "delete_conversation"] = "delete"
    tenant: TenantName
    agent_id: Omitted[str] = None
    session_id: Omitted[str] = None
    response_id: Omitted[str] = None
    conversation_id: Omitted[str] = None

    @model_validator(mode="after")
    def require_ids(self) -> Self:
        if None in self._named:
            raise ValueError(f"A task of kind {self.kind} names its {self.object_kind}.")
        return self

    @property
    def object_kind(self) -> ObjectKind:
        match self.kind:
            case "delete_response":
                return "response"
            case "delete_conversation":
                return "conversation"
        return "agent" if self.session_id is None else "session"

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of the object, its parent's first."""
        return tuple(each for each in self._named if each is not None)

    @property
    def _named(self) -> tuple[str | None, ...]:
        match self.object_kind:
            case "agent":
                return (self.agent_id,)
            case "session":
                return (self.agent_id, self.session_id)
            case "response":
                return (self.response_id,)
        return (self.conversation_id,)


class ResponseTask(Schema):
    """Run a background response that is stored."""

    kind: Literal["response"] = "response"
    tenant: TenantName
    response_id: str


AnyTask = Annotated[DeletionTask | ResponseTask, Field(discriminator="kind")]
TASK: TypeAdapter[AnyTask] = TypeAdapter(AnyTask, config=ConfigDict(defer_build=True))
"""Reads a message. A message alone deletes nothing: the object must also be marked as deleted in the table."""
