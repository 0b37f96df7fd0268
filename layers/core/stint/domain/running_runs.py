"""Running turns and responses as operators see them."""

from typing import Literal

from pydantic import Field

from stint.domain.run_signals import OnDisconnect
from stint.domain.schema import Schema


class RunningRun(Schema):
    """A turn or a response that runs and has lasted a while, without any of its content."""

    object: Literal["run"] = "run"
    kind: Literal["turn", "response"]
    id: str = Field(description="Id of the turn or the response.")
    agent_id: str | None = None
    session_id: str | None = None
    conversation_id: str | None = None
    model: str = Field(description="The model that the agent or the response names.")
    key_id: str | None = Field(default=None, description="Id of the caller's API key. Null: a token, or no caller.")
    user_hash: str | None = Field(default=None, description="Hash of the end user.")
    background: bool = Field(default=False, description="Whether the worker runs it as a background response.")
    on_disconnect: OnDisconnect = Field(default="continue", description="Whether it ends without its client.")
    began_at: int = Field(description="When this part of it began, in seconds since 1970. A resume begins another one.")
    until: int = Field(description="When it is no longer listed unless its process renews this, in seconds since 1970.")
