"""Messages that wait for their conversation, as responses that are queued."""

from dataclasses import dataclass

from stint.caller import RequestAttempt, find_end_user
from stint.domain.errors import NotFound
from stint.domain.ids import is_name, name_of
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.response_resource import Response, make_response
from stint.domain.openai.stored_responses import ResponseError, ResponseOutcome, ResponseStatus
from stint.domain.waiting_messages import MessageState
from stint.services.background.response_admission import is_lost, message_of
from stint.services.responses.masking import masked
from stint.services.responses.read import ResponseReader
from stint.services.responses.responses import Responses
from stint.store.waiting_line import WaitingLine


@dataclass(frozen=True, slots=True)
class WaitingResponses:
    """The messages that wait for the conversations of a tenant."""

    responses: Responses
    reader: ResponseReader

    async def get(self, response_id: str) -> Response:
        """Return a message as a queued response, or the response that was started for it. Raises NotFound."""
        state = await self.find(response_id)
        if state.claimed_by is not None and name_of("resp", state.claimed_by) != response_id:
            return await self.reader.get(name_of("resp", state.claimed_by))
        return self.to_response(response_id, state)

    async def cancel(self, response_id: str) -> Response:
        """Cancel a message that waits, and return it as a response. Raises NotFound."""
        state = await self.find(response_id)
        request = CreateResponse.model_validate_json(state.message.body)
        store, tenant = self.responses.store, self.responses.tenant
        conversation_id = request.conversation_id or ""
        lost = state if await is_lost(self.responses, conversation_id, state) else None
        line = store.conversation_line(tenant, conversation_id)
        await line.cancel(message_of(response_id), find_end_user(), lost)
        return await self.get(response_id)

    async def find_accepted(self, attempt: RequestAttempt, line: WaitingLine) -> str | None:
        """Return the message of an earlier attempt of a request that waits in line."""
        places = await line.read()
        if attempt.repeated:
            state = await line.get(attempt.object_id)
            known = state is not None and (state.is_over or attempt.object_id in {each.message_id for each in places})
            return attempt.object_id if known else None
        for place in places:
            same = place.fingerprint == attempt.fingerprint
            if same and await line.note_retry(place.message_id, attempt.retry_count):
                return place.message_id
        return None

    async def find(self, response_id: str) -> MessageState:
        """Return the state of a message. Raises NotFound."""
        state = None
        if is_name("resp", response_id):
            line = self.responses.store.waiting_responses(self.responses.tenant)
            state = await line.get(message_of(response_id))
        if state is None:
            raise NotFound("Response", response_id)
        return state

    def to_response(self, response_id: str, state: MessageState) -> Response:
        request = CreateResponse.model_validate_json(state.message.body)
        header = masked(self.responses.new_header(request, response_id))
        header.created_at = int(state.message.accepted_at.timestamp())
        status, error = ResponseStatus.queued, None
        if state.error is not None:
            status = ResponseStatus.failed
            error = ResponseError(**state.error.model_dump(include={"code", "message", "type"}))
        elif state.cancelled:
            status = ResponseStatus.cancelled
        outcome = None if status is ResponseStatus.queued else ResponseOutcome(status=status, error=error)
        return make_response(header, [], status, outcome)
