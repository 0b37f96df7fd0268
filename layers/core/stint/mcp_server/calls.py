"""Calls of tools: each is a turn, in a new session or in that of an earlier call, or the rest of one that waited.

A call that is repeated with an idempotency key finds what its first attempt created:

    the call                   the key's record has                  the turn is
    begins a session           the id of the session                 the one with the same id
                               with a dot and the id of a turn,      the one with this id
                               if the first turn was run again
    continues a session        the id of the turn                    the one with this id
    answers a turn's request   an id that is not looked at           that of the state, if it has these answers already
"""

from functools import partial

from stint.caller import EarlierRunUnavailable, RequestAttempt, create_once, find_attempt, raise_call_depth
from stint.dataclasses import dataclass, replace
from stint.domain.call_depth import DEPTH_KEY, read_depth
from stint.domain.errors import NotFound
from stint.domain.ids import new_id
from stint.domain.llama_stack.turns import Turn, TurnCreateRequest, TurnStatus
from stint.domain.messages import UserMessage
from stint.domain.run_signals import TurnRef
from stint.domain.session_budgets import SessionBudget
from stint.log_keys import add_log_keys
from stint.mcp_server.call_states import McpCallState
from stint.mcp_server.pending_input import to_resume
from stint.mcp_server.schemas import CallParams
from stint.services.agents.sessions import Sessions
from stint.services.runs.run_handle import RequestContext
from stint.services.turns.turn_handles import TurnHandle
from stint.services.turns.turn_requests import TurnRequests
from stint.store.mcp_calls import MOST_CALLS, McpCalls

SESSION_NAME = "MCP"


@dataclass(frozen=True, slots=True)
class StartedCall:
    """A call with the handle of its turn. `turn` is where the turn is looked for to cancel it."""

    turn: TurnRef
    handle: TurnHandle
    requests: TurnRequests

    @property
    def session_id(self) -> str:
        return self.turn.session_id

    async def cancel(self) -> None:
        """Cancel the turn of the call. Raises StintError."""
        await self.requests.cancellation.cancel(self.turn.agent_id, self.turn.session_id, self.turn.turn_id)


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """The calls of a tenant's tools."""

    sessions: Sessions
    requests: TurnRequests
    calls: McpCalls

    async def start(self, agent_id: str, params: CallParams, context: RequestContext, digest: str) -> StartedCall:
        """Start the turn of a call, or find that of an earlier attempt. `digest` is of the call's id, to cancel it.

        Raises:
            EarlierRunUnavailable: the attempt only follows a turn, which has not begun.
            StintError: the call is refused, as `Sessions.create` and `TurnRequests.submit`.
        """
        note_depth(params)
        request = TurnCreateRequest(messages=[UserMessage(content=params.arguments.message)])
        given = params.arguments.session_id
        if given is None:
            session_id, attempt = await self.begin_session(agent_id, request, params.meta.budget)
        else:
            session_id, attempt = given, with_id(find_attempt())
        add_log_keys(agent_id=agent_id, session_id=session_id)
        turn = TurnRef(agent_id, session_id, attempt.object_id)
        await self.calls.put(self.sessions.tenant, digest, turn)
        handle = await self.requests.submit(agent_id, session_id, request, replace(context, attempt=attempt))
        return StartedCall(turn, handle, self.requests)

    async def begin_session(
        self, agent_id: str, request: TurnCreateRequest, budget: SessionBudget | None
    ) -> tuple[str, RequestAttempt]:
        """Create a session, or find that of an earlier attempt, and return the attempt to start its turn."""
        find = partial(self.find_session, agent_id)
        if (attempt := find_attempt()).follows:
            try:
                session_id = await find(attempt.object_id)
            except NotFound:
                raise EarlierRunUnavailable from None
        else:
            await self.requests.turns.check_input(request)  # before there is a session, which would stay without it
            session_id = await create_once(find, partial(self.create_session, agent_id, budget))
        attempt = find_attempt()  # its id may be a new one
        if not attempt.object_id:
            return session_id, with_id(attempt)
        turn_id = attempt.object_id.rpartition(".")[2]
        return session_id, replace(attempt, object_id=turn_id, rename=partial(keep_ids, attempt, session_id))

    async def find_session(self, agent_id: str, object_id: str) -> str:
        """Return the session of a key's record. Raises NotFound."""
        return await self.sessions.find_created(agent_id, object_id.partition(".")[0])

    async def create_session(self, agent_id: str, budget: SessionBudget | None, session_id: str) -> str:
        return await self.sessions.create(agent_id, SESSION_NAME, session_id=session_id, budget=budget)

    async def resume(
        self, state: McpCallState, params: CallParams, context: RequestContext, digest: str
    ) -> StartedCall | None:
        """Resume the turn of a state with the client's answers; None if its user has not decided.

        Raises:
            EarlierRunUnavailable: the attempt only follows the first one, which has stored nothing.
            InvalidRequest: the answers do not fit what was asked.
            StintError: as `TurnRequests.resume`.
        """
        note_depth(params)
        request = to_resume(state.calls, params.input_responses or {})
        if request is None:
            return None
        ids = (state.agent_id, state.session_id, state.turn_id)
        turn = TurnRef(*ids)
        add_log_keys(agent_id=state.agent_id, session_id=state.session_id, turn_id=state.turn_id)
        await self.calls.put(self.sessions.tenant, digest, turn)
        handle = await self.requests.resume(*ids, request, replace(context, attempt=find_attempt()))
        return StartedCall(turn, handle, self.requests)

    async def read_turn(self, state: McpCallState) -> Turn:
        """Return the turn of a state. Raises NotFound."""
        return await self.requests.turns.get(state.agent_id, state.session_id, state.turn_id)

    async def cancel(self, digest: str) -> None:
        """Cancel the turn of the call with an id, if exactly one such call runs. Raises StintError."""
        calls = await self.calls.list(self.sessions.tenant, digest)
        if len(calls) == MOST_CALLS:
            return  # older ones may run
        running = [turn for turn in calls if await self.is_running(turn)]
        if len(running) == 1:
            turn = running[0]
            await self.requests.cancellation.cancel(turn.agent_id, turn.session_id, turn.turn_id)

    async def is_running(self, turn: TurnRef) -> bool:
        """Return whether a turn runs or waits in line. One that waits for its client has answered its call."""
        try:
            found = await self.requests.turns.get(turn.agent_id, turn.session_id, turn.turn_id)
        except NotFound:
            return False  # it was refused, or is deleted
        return found.status is TurnStatus.in_progress


def note_depth(params: CallParams) -> None:
    """Raise the depth of the current request to that of a call. Raises InvalidRequest."""
    if params.meta.call_depth is not None:
        raise_call_depth(read_depth(params.meta.call_depth, f"params._meta.{DEPTH_KEY}"))


def with_id(attempt: RequestAttempt) -> RequestAttempt:
    """Return an attempt whose turn has an id before it is started."""
    return attempt if attempt.object_id else replace(attempt, object_id=new_id())


async def keep_ids(attempt: RequestAttempt, session_id: str, turn_id: str) -> None:
    """Put a session and its turn into the key's record. Raises Interrupted if another process has the request."""
    if attempt.rename is not None:
        await attempt.rename(f"{session_id}.{turn_id}")
