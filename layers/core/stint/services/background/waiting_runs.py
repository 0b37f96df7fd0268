"""Runs of waiting messages whose request died, which the worker starts."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager

from stint.caller import NO_ATTEMPT, RequestAttempt, acting_as, find_end_user, set_attempt, set_end_user
from stint.dataclasses import dataclass
from stint.domain.errors import DeadlineExceeded, StintError, Unexpected
from stint.domain.llama_stack.turns import TurnCreateRequest
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.principals import Principal
from stint.domain.run_outcome import ErrorInfo
from stint.domain.tasks import WaitingTask
from stint.domain.waiting_messages import MessageState, WaitingMessage, WaitingPlace
from stint.services.background.response_admission import ResponseAdmission
from stint.services.responses.responses import Responses
from stint.services.runs.admission import TEMPORARY, StartedRun
from stint.services.turns.turn_admission import TurnAdmission
from stint.services.turns.turns import Turns

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WaitingRuns:
    """Starts the runs of a tenant's waiting messages whose request died, and runs them to their end."""

    turns: Turns
    responses: Responses
    admit_turns: Callable[[str, str], TurnAdmission]
    admit_responses: Callable[[str], ResponseAdmission]

    async def handle(self, task: WaitingTask, deadline: float, *, last: bool = False) -> None:
        """Run a message if it is its turn. If it must wait, or has a request, its task is sent again.

        With `last`, no delivery follows: the task is sent again after an error of the store. After an unexpected one
        the message has failed, so that it does not block those behind it.

        Raises:
            StoreUnavailable: the task could not be handled.
        """
        admission = self.admission_of(task)
        try:
            await self.run_first(admission, task.message_id, deadline)
        except StintError:
            if not last:
                raise
            await admission.send_task(task.message_id)
        except Exception:
            if last:
                await admission.line.fail(task.message_id, ErrorInfo.of(Unexpected()))
            raise

    async def run_first(self, admission: TurnAdmission | ResponseAdmission, message_id: str, deadline: float) -> None:
        """Run a message if it is its turn, or send its task again."""
        line = admission.line
        places = {place.message_id: place for place in await line.read()}
        state = await line.get(message_id)  # after its place: a message is claimed before it leaves the line
        if state is None and message_id in places:
            await line.delete(message_id)  # the process that removed it died before
        elif state is not None and message_id not in places and not state.is_over:
            await line.delete_unclaimed(message_id)  # its request died before it was accepted
        if state is None or message_id not in places:
            return
        if places[message_id].alive or not await self.run(admission, places[message_id], state, deadline):
            await admission.send_task(message_id)

    def admission_of(self, task: WaitingTask) -> TurnAdmission | ResponseAdmission:
        if task.conversation_id is not None:
            return self.admit_responses(task.conversation_id)
        return self.admit_turns(task.agent_id or "", task.session_id or "")

    async def run(
        self, admission: TurnAdmission | ResponseAdmission, place: WaitingPlace, state: MessageState, deadline: float
    ) -> bool:
        """Run a message to its end, and return whether it no longer waits."""
        message_id = place.message_id
        with acting_for(state.message):
            set_attempt(RequestAttempt(place.fingerprint, place.retry_count))
            try:
                if isinstance(admission, TurnAdmission):
                    await self.run_turn(admission, message_id, state.message, deadline)
                else:
                    await self.run_response(admission, message_id, state.message, deadline)
                await admission.line.remove_place(message_id)  # its removal after the start may have failed
            except TEMPORARY as error:
                still = isinstance(error, DeadlineExceeded)
                logger.log(logging.INFO if still else logging.WARNING, "A message still waits", extra=of(error))
                return False
            except StintError as error:
                logger.warning("A waiting message was not started", extra=of(error))
        return True

    async def run_turn(
        self, admission: TurnAdmission, message_id: str, message: WaitingMessage, deadline: float
    ) -> None:
        request, now = TurnCreateRequest.model_validate_json(message.body), asyncio.get_running_loop().time()
        turn = await admission.start(message_id, request, deadline, wait_until=now)
        if not isinstance(turn, StartedRun):
            await exhaust(self.turns.run(turn))
            await self.turns.write_segments(turn)

    async def run_response(
        self, admission: ResponseAdmission, message_id: str, message: WaitingMessage, deadline: float
    ) -> None:
        request, now = CreateResponse.model_validate_json(message.body), asyncio.get_running_loop().time()
        if message.lenient:
            request = request.for_llama_stack()
        response = await admission.start(message_id, request, deadline, wait_until=now)
        if not isinstance(response, StartedRun):
            await exhaust(self.responses.run(response))


async def exhaust(events: AsyncGenerator[object, None]) -> None:
    """Run to the end."""
    async for _ in events:
        pass


@contextmanager
def acting_for(message: WaitingMessage) -> Iterator[None]:
    """Run the body for the caller who sent a message, and for its end user."""
    creator, user = message.creator, find_end_user()
    with acting_as(Principal.from_context(creator) if creator is not None else None):
        set_end_user(message.end_user)
        try:
            yield
        finally:
            set_end_user(user)
            set_attempt(NO_ATTEMPT)


def of(error: StintError) -> dict[str, str]:
    return {"error_code": error.code, "error": error.message}
