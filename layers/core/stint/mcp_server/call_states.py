"""The state of a call that waits for its client, which the client sends back with its answers.

It is signed with the tenant's key and not encrypted: a client may read what it was asked, but it cannot ask itself
something else. A state is good for the caller, the end user, the agent and the turn that it was made for, and expires.
Its signature says nothing about the turn, which may have gone on meanwhile, so the turn is checked as for any resume.
"""

import json
import time
from hashlib import sha256

from stint.caller import find_end_user, require_principal
from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest
from stint.domain.openai.opaque import OpaqueReader, SigningKey, check_opaque, encode_opaque
from stint.domain.schema import Schema
from stint.store.signing_keys import SigningKeys

VALID_SECONDS = 3_600
MAX_STATE_BYTES = 1_000_000
"""Maximum bytes of a state's JSON. Packed, it is smaller."""


class AskedCall(Schema):
    """A call that the client was asked about: for the approval of one of the server, or for the result of its own.

    `form` is the key of a form with which another MCP server asks in the middle of the call, shown as it is. A call
    with several forms was asked about several times.
    """

    call_id: str
    tool_name: str
    approval: bool = False
    form: str | None = None


class McpCallState(Schema):
    """A turn that waits, and what was asked. `caller` is a hash of the principal and its end user."""

    agent_id: str
    session_id: str
    turn_id: str
    calls: list[AskedCall]
    caller: str
    until: int


@dataclass(frozen=True, slots=True)
class CallStates:
    """The states of a tenant's calls."""

    tenant: str
    keys: SigningKeys

    async def write(self, agent_id: str, session_id: str, turn_id: str, calls: list[AskedCall]) -> str:
        """Return the state of a turn that waits for answers to calls of the current caller."""
        state = McpCallState(
            agent_id=agent_id,
            session_id=session_id,
            turn_id=turn_id,
            calls=calls,
            caller=hash_caller(),
            until=int(time.time()) + VALID_SECONDS,
        )
        return encode_opaque(state, await self.load_key())

    async def read(self, text: str, agent_id: str, session_id: str | None) -> McpCallState:
        """Return the state that a client sent back for a call of an agent.

        Raises:
            InvalidRequest: it is not one of `write`, is another caller's, agent's or session's, or has expired.
        """
        try:
            check_opaque(text, McpCallState, await self.load_key())
            state = OpaqueReader(MAX_STATE_BYTES).read(text, McpCallState)
        except ValueError:
            raise refuse("was not returned by this server, or was changed") from None
        if state.caller != hash_caller():
            raise refuse("belongs to another caller or end user")
        if state.agent_id != agent_id or session_id not in (None, state.session_id):
            raise refuse("belongs to another tool or session")
        if time.time() >= state.until:
            raise refuse("has expired")
        return state

    async def load_key(self) -> SigningKey:
        return SigningKey(self.tenant, await self.keys.get(self.tenant))


def hash_caller() -> str:
    """Return a hash of the current caller, and of the end user for whom it acts."""
    principal = require_principal()
    named = [principal.tenant, principal.key_id, principal.subject, find_end_user()]
    return sha256(json.dumps(named).encode()).hexdigest()[:32]


def refuse(reason: str) -> InvalidRequest:
    message = f"The requestState {reason}. Send back the one of the result that asked, unchanged, or call again."
    return InvalidRequest(message, code="invalid_request_state", param="params.requestState")
