"""Messages that wait for their conversation, as responses that are queued.

A client of the Responses API knows only responses, so a message has the digits of its response's id, and is shown as
a response. `get` and `cancel` return:

| the message           | `get`                            | `cancel`             | `delete`                          |
|-----------------------|----------------------------------|----------------------|-----------------------------------|
| waits                 | a queued response                | a cancelled response | cancels, then deletes the message |
| started as a response | that response                    | that response        | deletes the response              |
| taken by a response   | that response                    | that response        | Conflict                          |
| claimed by a lost run | a queued response                | a cancelled response | cancels, then deletes the message |
| cancelled or failed   | a response without output        | the same             | deletes the message               |
| gone                  | its stored response, or NotFound | likewise             | deletes the stored response       |
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from stint.caller import RequestAttempt, find_end_user
from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, NotFound
from stint.domain.ids import name_of
from stint.domain.openai.response_events import ResponseCreated, ResponseEvent, ResponseFailed
from stint.domain.openai.response_options import Include
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.response_resource import DeletedResponse, Response, make_response
from stint.domain.openai.stored_responses import ResponseError, ResponseOutcome, ResponseStatus
from stint.domain.waiting_messages import MessageState
from stint.services.background.response_admission import is_lost
from stint.services.responses.input_items import owner_of
from stint.services.responses.masking import masked
from stint.services.responses.merging import message_of
from stint.services.responses.message_runs import conversation_of, find_state, read_run
from stint.services.responses.read import ResponseReader
from stint.services.responses.response_run import ResponseRun
from stint.services.responses.responses import Responses
from stint.services.runs.admission import Admission
from stint.store.waiting_line import WaitingLine


@dataclass(frozen=True, slots=True)
class WaitingResponses:
    """The messages that wait for the conversations of a tenant."""

    responses: Responses
    reader: ResponseReader

    async def get(self, response_id: str, include: Sequence[Include] = ()) -> Response:
        """Return a message as a queued response, or the response that has it. Raises NotFound."""
        state = await self.find(response_id)
        store, tenant = self.responses.store, self.responses.tenant
        stored = await read_run(self.reader.read, store, tenant, response_id, state=state)
        return self.to_response(response_id, state) if stored is None else self.reader.to_resource(stored, include)

    async def find_run(self, response_id: str) -> str:
        """Return the id of the response that has a message. Raises NotFound if none has it."""
        found = (await self.get(response_id)).id
        if found == response_id:
            raise NotFound("Response", response_id)
        return found

    async def delete(self, response_id: str) -> DeletedResponse:
        """Cancel a message that waits, and delete it, or else the response that was started for it.

        Raises:
            NotFound: there is no such message.
            Conflict: another response has taken the message, or it is being started.
        """
        try:
            state = await self.find(response_id)
        except NotFound:  # a message is deleted once its response is stored
            return await self.reader.delete(response_id)
        line, message_id = self.line_of(state), message_of(response_id)
        await line.cancel(message_id, None, await self.find_lost(response_id, state))
        try:
            state = await self.find(response_id)
        except NotFound:  # its response was stored in the meantime
            return await self.reader.delete(response_id)
        if state.claimed_by is not None and not state.cancelled:
            await self.delete_run(response_id, state)
        await line.delete(message_id)
        return DeletedResponse(id=response_id)

    async def delete_run(self, response_id: str, state: MessageState) -> None:
        """Delete the response that was started for a message. Raises Conflict as `delete`."""
        if state.merged_into is not None:
            other = name_of("resp", state.merged_into)
            message = f"Response {response_id} was merged into response {other}. Delete response {other} instead."
            raise Conflict(message, code="response_merged")
        try:
            await self.reader.delete(name_of("resp", str(state.run_id)))
        except NotFound:
            if state.error is not None:  # its start was refused after the claim, so no response was stored
                return
            raise Conflict(f"Response {response_id} is being started. Try again.", code="response_starting") from None

    def line_of(self, state: MessageState) -> WaitingLine:
        """Return the line of a message's conversation."""
        return self.responses.store.conversation_line(self.responses.tenant, conversation_of(state))

    async def find_lost(self, response_id: str, state: MessageState) -> MessageState | None:
        """Return the state of a message if the response that has claimed it died before it stored it."""
        message_id = message_of(response_id)
        return state if await is_lost(self.responses, conversation_of(state), message_id, state) else None

    async def cancel(self, response_id: str) -> Response:
        """Cancel a message that waits, and return it as a response, or the response that has it. Raises NotFound."""
        state = await self.find(response_id)
        lost = await self.find_lost(response_id, state)
        await self.line_of(state).cancel(message_of(response_id), find_end_user(), lost)
        return await self.get(response_id)

    async def find_merged(self, attempt: RequestAttempt, conversation_id: str) -> str | None:
        """Return the message of an earlier attempt that a response of the conversation has taken.

        It is one that the running or last response has, or that has left the line in the last 10 minutes. Each message
        answers one retry per count.
        """
        store, tenant = self.responses.store, self.responses.tenant
        line = store.conversation_line(tenant, conversation_id)
        taken = [*await self.find_newest_merged(attempt, conversation_id), *await line.find_merged(attempt.fingerprint)]
        for message_id in dict.fromkeys(taken):
            if await store.retry_claims.put(tenant, message_id, attempt.retry_count):
                return message_id
        return None

    async def find_newest_merged(self, attempt: RequestAttempt, conversation_id: str) -> list[str]:
        """Return the messages of earlier attempts that the conversation's running or last response has taken."""
        store, tenant = self.responses.store, self.responses.tenant
        running = await store.conversation_leases.find_holder(tenant, conversation_id)
        if running is None:
            last = await store.conversations.list_items(tenant, conversation_id, limit=1)
            running = owner_of(last.data[0].item.id) if last.data else None
        if running is None:
            return []
        with suppress(NotFound):
            merged = (await self.reader.read(running)).merged
            return [each.message_id for each in merged if each.fingerprint == attempt.fingerprint]
        return []

    async def wait_for_start(
        self, response_id: str, admit: Callable[[str], Admission[CreateResponse, ResponseRun]], deadline: float
    ) -> str:
        """Return the id of the response that has a message, once other processes have started it.

        `admit` returns the admission of a conversation. Raises as `Admission.wait_for_start`.
        """
        state = await find_state(self.responses.store, self.responses.tenant, response_id)
        if state is None:  # its response was stored in the meantime
            return response_id
        started = await admit(conversation_of(state)).wait_for_start(message_of(response_id), deadline)
        return name_of("resp", started.run_id)

    async def end_events(self, response_id: str, after: int) -> list[ResponseEvent]:
        """Return the events after a number, and at least the last one, of a message that is not started.

        Raises NotFound if it was deleted.
        """
        ended = await self.get(response_id)
        if ended.status not in (ResponseStatus.cancelled, ResponseStatus.failed):  # its conversation is being deleted
            raise NotFound("Response", response_id)
        queued = ended.model_copy(update={"status": ResponseStatus.queued, "error": None})
        failed = ResponseFailed(sequence_number=1, response=ended)
        return [ResponseCreated(response=queued), failed] if after < 0 else [failed]

    async def find(self, response_id: str) -> MessageState:
        """Return the state of a message. Raises NotFound."""
        state = await find_state(self.responses.store, self.responses.tenant, response_id)
        if state is None:
            raise NotFound("Response", response_id)
        return state

    def to_response(self, response_id: str, state: MessageState) -> Response:
        request = CreateResponse.model_validate_json(state.message.body)
        header = masked(self.responses.new_header(request, response_id))
        header.created_at, header.expires_at = int(state.message.accepted_at.timestamp()), state.message.expires_at
        status, error = ResponseStatus.queued, None
        if state.error is not None:
            status = ResponseStatus.failed
            error = ResponseError(**state.error.model_dump(include={"code", "message", "type"}))
        elif state.cancelled:
            status = ResponseStatus.cancelled
        outcome = None if status is ResponseStatus.queued else ResponseOutcome(status=status, error=error)
        return make_response(header, [], status, outcome)
