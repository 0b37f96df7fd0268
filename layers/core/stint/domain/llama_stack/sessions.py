"""Sessions: the conversations of an agent."""

from pydantic import Field

from stint.domain.expiry import Expiry
from stint.domain.fields import Omitted
from stint.domain.llama_stack.turns import Turn
from stint.domain.schema import Request, Schema, Timestamp


class Session(Schema):
    """A session as the API returns it. In lists, `turns` is empty.

    `vector_db_id` is the session's own vector db, which has the long documents of its turns. It is missing without one.
    """

    session_id: str
    session_name: str
    turns: list[Turn] = Field(default_factory=list)
    started_at: Timestamp
    vector_db_id: Omitted[str] = None


class SessionList(Schema):
    """A page of sessions in creation order. `has_more`: others follow."""

    data: list[Session]
    has_more: bool
    url: str


class SessionCreateRequest(Request):
    session_name: str
    expires_after: Omitted[Expiry] = None


class SessionCreateResponse(Schema):
    session_id: str
