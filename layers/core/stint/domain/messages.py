"""Messages to an agent: user messages and tool results."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Tag

from stint.domain.content import Content
from stint.domain.schema import Request
from stint.domain.tools import ToolResponseMessage


class UserMessage(Request):
    """A user message. `context` is stored with the turn and not sent to the model."""

    role: Literal["user"] = "user"
    content: Content
    context: Content | None = None


def role_of(message: Any) -> str:
    """Return the role of a message. Without one it is the user's, unless it answers a call."""
    if not isinstance(message, dict):
        return str(getattr(message, "role", "user"))
    return str(message.get("role") or ("tool" if "call_id" in message else "user"))


InputMessage = Annotated[
    Annotated[UserMessage, Tag("user")] | Annotated[ToolResponseMessage, Tag("tool")],
    Discriminator(role_of, custom_error_type="role", custom_error_message="the role of a message must be user or tool"),
]
