"""Work that is left to the worker function."""

from typing import Literal

from stint.domain.schema import Schema


class DeletionTask(Schema):
    """Finish the deletion of a session, or of an agent with all its sessions; what it names is marked already."""

    task: Literal["delete"] = "delete"
    tenant: str
    agent_id: str
    session_id: str | None = None
