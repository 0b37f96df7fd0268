"""Sessions: the conversations of an agent."""

from typing import Annotated

from pydantic import Field

from stint.domain.expiry import Expiry
from stint.domain.fields import Metadata, Omitted, is_unset
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.turns import Turn, TurnSummary
from stint.domain.schema import Request, Schema, Timestamp
from stint.domain.session_budgets import SessionBudget, SpentBudget


class ForkFrom(Request):
    """The session and the turn that a new session continues from. It starts with copies of the turns up to that one."""

    session_id: str
    turn_id: str


class ForkedFrom(Schema):
    """Where the first turns of a session were copied from. `complete`: all turns up to that one were copied."""

    session_id: str
    turn_id: str
    complete: bool


class Session(Schema):
    """A session as the API returns it. In lists, `turns` is empty.

    `vector_db_id` is the session's own vector db, which has the long documents of its turns. It is missing without one.
    Lists have `last_turn` if it is asked for and the session has a turn. `forked_from`, `metadata` and `budget` are
    missing in lists.
    """

    session_id: str
    session_name: str
    turns: list[Turn] = Field(default_factory=list)
    started_at: Timestamp
    vector_db_id: Omitted[str] = None
    last_turn: Omitted[TurnSummary] = None
    forked_from: Omitted[ForkedFrom] = None
    metadata: Omitted[dict[str, str]] = None
    budget: Omitted[SpentBudget] = None


class SessionSettings(Schema):
    """Settings of a session's own. `agent` takes the place of its agent's configuration in its turns.

    `updated_at` is the time of the last change, or of the creation. The MCP servers of its turns get the credentials of
    the vaults `vault_ids`.
    """

    agent: Omitted[AgentConfig] = None
    metadata: dict[str, str] = Field(default_factory=dict)
    vault_ids: Annotated[list[str], Field(exclude_if=is_unset)] = Field(default_factory=list)
    updated_at: Timestamp


class SessionList(Schema):
    """A page of sessions. `has_more`: others follow, or may follow, after the id `next_after`."""

    data: list[Session]
    has_more: bool
    url: str
    next_after: Omitted[str] = None


class TurnList(Schema):
    """A page of a session's turns. `has_more`: others follow after the last one.

    With `status`, others may follow after the id `next_after`.
    """

    data: list[Turn]
    has_more: bool
    url: str
    next_after: Omitted[str] = None


class SessionCreateRequest(Request):
    """A session to be created. Lists find it by its `metadata`. A fork does not have the metadata of its source.

    `budget` limits what all its turns spend. A fork without one has the limits of its source.
    """

    session_name: str
    expires_after: Omitted[Expiry] = None
    fork_from: Omitted[ForkFrom] = None
    metadata: Omitted[Metadata] = None
    budget: Omitted[SessionBudget] = None


class SessionCreateResponse(Schema):
    session_id: str
