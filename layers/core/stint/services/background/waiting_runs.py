"""Runs of waiting messages whose request died, which the worker starts.

Each message has a task from before it is stored until it has left the line. A delivery reads the line, then the
message, and sends the task again while the message has a request or others are before it. The order of the reads
matters: a message is claimed before it leaves the line, so one that is not in line is over, or never was accepted.
"""

import asyncio
import logging

from stint.caller import RequestAttempt
from stint.dataclasses import dataclass
from stint.domain.errors import DeadlineExceeded, StintError, Unexpected
from stint.domain.llama_stack.turns import TurnCreateRequest
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.run_outcome import ErrorInfo
from stint.domain.tasks import WAITING_DELAY, ResumeTask, WaitingTask
from stint.domain.waiting_messages import MessageState, WaitingMessage, WaitingPlace
from stint.services.background.response_handles import StartedResponse
from stint.services.background.response_requests import NewResponse, ResponseRequests
from stint.services.responses.response_run import ResponseRun
from stint.services.runs.admission import TEMPORARY, Admission, StartedRun
from stint.services.runs.run_handle import RequestContext
from stint.services.runs.senders import acting_for
from stint.services.turns.session_input import SessionInput
from stint.services.turns.turn_handles import StartedTurn
from stint.services.turns.turn_requests import NewTurn, TurnRequests
from stint.services.turns.turn_run import TurnRun
from stint.store.waiting_line import WaitingLine

AnyAdmission = Admission[TurnCreateRequest, TurnRun] | Admission[CreateResponse, ResponseRun]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WaitingRuns:
    """Starts the runs of a tenant's waiting messages whose request died, and runs them to their end."""

    turns: TurnRequests
    responses: ResponseRequests

    async def handle(self, task: WaitingTask | ResumeTask, deadline: float, *, last: bool = False) -> None:
        """Run a message if it is its turn. If it must wait, or has a request, its task is sent again.

        Or resume a turn whose calls all have results (`SessionInput.handle`).

        With `last`, no delivery follows: the task is sent again after an error of the store. After an unexpected one
        the message has failed, so that it does not block those behind it.

        Raises:
            StoreUnavailable: the task could not be handled.
        """
        if isinstance(task, ResumeTask):
            try:
                await SessionInput(self.turns, task.agent_id, task.session_id).handle(task, deadline)
            except StintError:
                if not last:
                    raise
                await self.turns.send(task)
            return
        admission = self.admission_of(task)
        try:
            await self.run_first(admission, task, deadline)
        except StintError:
            if not last:
                raise
            await admission.kind.send_task(task.message_id)
        except Exception:
            if last:
                await admission.line.fail(task.message_id, ErrorInfo.of(Unexpected()))
            raise

    async def run_first(self, admission: AnyAdmission, task: WaitingTask, deadline: float) -> None:
        """Run a message if it is its turn, or send its task again."""
        line, message_id = admission.line, task.message_id
        places = {place.message_id: place for place in await line.read()}
        state = await line.get(message_id)  # after its place: a message is claimed before it leaves the line
        if may_be_incomplete(task, state) and message_id not in places:
            again = {"looked_before": True, "delay_seconds": WAITING_DELAY}
            await self.turns.send(task.model_copy(update=again))
        elif state is None and message_id in places:
            await line.delete(message_id)  # the process that removed it died before
        elif state is not None and message_id not in places and not state.is_over:
            await line.delete_unclaimed(message_id)  # its request died before it was accepted
        if state is None or message_id not in places:
            return
        if places[message_id].alive or not await self.run(line, task, places[message_id], state, deadline):
            await admission.kind.send_task(message_id)

    def admission_of(self, task: WaitingTask) -> AnyAdmission:
        if task.conversation_id is not None:
            return self.responses.make_admission(task.conversation_id)
        return self.turns.make_admission(task.agent_id or "", task.session_id or "", attended=not task.unattended)

    async def run(
        self, line: WaitingLine, task: WaitingTask, place: WaitingPlace, state: MessageState, deadline: float
    ) -> bool:
        """Run a message to its end, and return whether it no longer waits."""
        with acting_for(state.message.creator, state.message.end_user):
            attempt = RequestAttempt(place.fingerprint, place.retry_count)
            context = RequestContext(deadline, attempt, spares_waiting_turn=task.unattended)
            try:
                started = await self.start(task, state.message, context)
                if not isinstance(started, StartedRun):
                    await started.outcome()
                    await started.finish()
                    await started.send_trace()
                await line.remove_place(place.message_id)  # its removal after the start may have failed
            except TEMPORARY as error:
                still = isinstance(error, DeadlineExceeded)
                logger.log(logging.INFO if still else logging.WARNING, "A message still waits", extra=of(error))
                return False
            except StintError as error:
                logger.warning("A waiting message was not started", extra=of(error))
        return True

    async def start(
        self, task: WaitingTask, message: WaitingMessage, context: RequestContext
    ) -> StartedTurn | StartedResponse | StartedRun:
        """Start the run of a message now, or return the one that another process has started. Raises StintError."""
        now = asyncio.get_running_loop().time()
        if task.conversation_id is None:
            turn = TurnCreateRequest.model_validate_json(message.body)
            new_turn = NewTurn(task.agent_id or "", task.session_id or "", turn, context)
            return await self.turns.start_message(new_turn, task.message_id, now)
        request = CreateResponse.model_validate_json(message.body)
        if message.lenient:
            request = request.for_llama_stack()
        return await self.responses.start_message(NewResponse(request, context), task.message_id, now)


def may_be_incomplete(task: WaitingTask, state: MessageState | None) -> bool:
    """Return whether the request of a message that is not in line may still be storing it: its task is fast."""
    return task.unattended and not task.looked_before and (state is None or not state.is_over)


def of(error: StintError) -> dict[str, str]:
    return {"error_code": error.code, "error": error.message}
