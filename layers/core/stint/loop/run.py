"""The state of a run of the loop, and the log that it writes.

`Plan` has what stays the same during a run, `Run` has what changes, and both APIs implement `Log` for their records. A
run belongs to one process and is never stored: a process that continues it makes another one from the log.

- The first model call is opened while the header is being stored. This hides one write, and a provider's refusal can be
  returned with its status. It is not opened early if something must happen first: the input shields must pass the
  messages, approved calls must run, context must be retrieved, or the history is to be compacted.
- A step is stored, then announced. `append` with an ending also releases the lease before it returns: a client that
  has read the last event can send its next request at once.
- `log.check` comes before each action that cannot be undone. A process that has lost its lease must not call a tool
  that the next process calls as well.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from stint.dataclasses import dataclass, field
from stint.domain.content import Content
from stint.domain.errors import ContextLengthExceeded
from stint.domain.inference import AnswerDetails, AssistantAnswer, InferenceRequest, ModelMessage, Usage
from stint.domain.limits import MAX_TOOL_CALLS
from stint.domain.run_events import StepComplete
from stint.domain.run_outcome import ErrorInfo, IncompleteReason, RunOutcome, RunStatus
from stint.domain.schema import now
from stint.domain.steps import MemoryRetrievalStep, ShieldCallStep, Step, ToolExecutionStep
from stint.domain.stored_messages import CompactedHistory
from stint.domain.tools import AskedInput, ToolCall, ToolChoice
from stint.loop.model_call import Inference, with_deadline
from stint.loop.output_guard import Check
from stint.loop.plan import InputLength, Plan
from stint.loop.result_budget import ResultBudget
from stint.loop.screening import Screening, screen
from stint.loop.transcript import Transcript
from stint.run_stop import raise_if_stopped

ACCEPTANCE_SECONDS = 5.0
"""Maximum delay of the first event, so that a provider's refusal can be returned with its status."""


class Log(Protocol):
    """The log of a run."""

    async def append(
        self, step: Step | None, ending: RunOutcome | None = None, details: AnswerDetails | None = None, /
    ) -> None:
        """Store a record. With an ending, release the lease before this returns.

        `details` belong to the answer in an inference step.

        Raises:
            Interrupted: another process ended the run.
        """
        ...

    def check(self) -> None:
        """Check that this process still has the lease, before an action that cannot be undone.

        Raises:
            Interrupted: another process may have ended the run.
        """
        ...

    async def append_compaction(self, step: MemoryRetrievalStep, compaction: CompactedHistory, /) -> None:
        """Store a compaction, with the step that shows it in the Agents API. Raises Interrupted as `append`."""
        ...

    async def append_early(self, steps: Sequence[ToolExecutionStep | ShieldCallStep], /) -> None:
        """Store the results of calls, with their checks, before those of earlier calls have arrived.

        Their steps are appended later.

        Raises:
            Interrupted: another process ended the run.
        """
        ...

    async def mark_sent(self, call_ids: Sequence[str], /, *, approved: bool) -> None:
        """Note that calls are being sent that must not be sent again, unless the log has the answer with them.

        It has no answer with calls that the client has `approved`.

        Raises:
            Interrupted: another process ended the run.
        """
        ...

    async def store_result(self, content: Content) -> str:
        """Store a result that is too long for a record, and return its key in the blob store."""
        ...

    async def take_input(self, transcript: Transcript, /) -> bool:
        """Store messages that were sent while the run runs, append them, and return whether there are any.

        Raises:
            Interrupted: another process ended the run.
        """
        ...


@dataclass(slots=True)
class Run:
    """A run of the loop."""

    run_id: str
    """The id of the turn or of the response."""
    plan: Plan
    transcript: Transcript
    """The messages so far, as the model sees them."""
    log: Log
    deadline: float
    """A time of the event loop's clock, at which the run ends."""
    approved: list[ToolCall] = field(default_factory=list)
    """Calls of an earlier answer that the server runs first."""
    later: list[ModelMessage] = field(default_factory=list)
    """The client's messages that follow the results of the `approved` calls."""
    checks: list[ShieldCallStep] = field(default_factory=list)
    """The checks of the client's results, which the run announces first."""
    tool_calls: int = 0
    """The number of calls that the server has run, or answered without running them."""
    iterations: int = 0
    """The number of answers that were read."""
    results: ResultBudget = field(default_factory=ResultBudget)
    usage: Usage | None = None
    """The sum of all model calls; None if no provider counted anything."""
    inference: Inference | None = None
    """The model call that is being opened or read."""
    unsent: set[str] = field(default_factory=set)
    """The ids of the calls of the last answer that did not start."""
    asked: dict[str, AskedInput] = field(default_factory=dict)
    """What the servers of tools ask the client, by the ids of the calls, for which the run waits."""
    called: set[str] = field(default_factory=set)
    """The names of the tools that were called before, in this turn (including its resumes) or response."""
    history_is_full: bool = False
    """Whether the history is almost too long to be read again."""
    summary_tokens: int = 0
    """The output tokens of the run's own summaries."""
    keeps_history: bool = False
    """Whether a summary failed, after which the run tries no other."""
    input_length: InputLength = field(default_factory=InputLength)

    @property
    def tool_choice(self) -> ToolChoice | str:
        """Return the tool choice for the next answer.

        One that requires a call is satisfied by it. Otherwise the model could never answer, and every run with server
        tools would reach its iteration limit. Results in the request do not count: with OpenAI's API, each request that
        requires a call gets one.
        """
        choice = self.plan.tool_config.tool_choice
        if choice is ToolChoice.required:
            return ToolChoice.auto if self.iterations > 0 or self.tool_calls > 0 else choice
        return ToolChoice.auto if choice in self.called and not isinstance(choice, ToolChoice) else choice

    def find_refused(self, calls: Iterable[ToolCall]) -> set[str]:
        """Return the ids of those calls of an answer that the tool choice forbids."""
        choice = self.tool_choice
        if isinstance(choice, ToolChoice):
            return {call.call_id for call in calls} if choice is ToolChoice.none else set()
        return {call.call_id for call in calls if call.tool_name != choice}

    @property
    def ending_details(self) -> AnswerDetails | None:
        """Return what the record of an ending needs: the calls of the last answer that have not started."""
        return AnswerDetails(unsent=sorted(self.unsent)) if self.unsent else None

    def open_inference(self) -> Inference:
        """Start the next model call, unless it has started already."""
        if self.inference is None:
            self.inference = Inference(self.plan.model, self.next_request())
        return self.inference

    def next_request(self) -> InferenceRequest:
        """Return the request of the next model call."""
        self.transcript.close()
        while self.later:
            self.transcript.append_message(self.later.pop(0))
        return self.plan.request(self.transcript.messages, self.output_tokens_left(), self.tool_choice)

    @property
    def compacts_first(self) -> bool:
        """Return whether the history is too long for the plan, so that it is compacted before the next model call."""
        if (rule := self.plan.compaction) is None or self.keeps_history:
            return False
        tokens, older = self.input_length.estimate(self.next_request()), self.transcript.older_messages
        return bool(older) and (self.history_is_full or rule.is_exceeded(tokens, older))

    @property
    def begins_with_steps(self) -> bool:
        """Return whether the run has steps before its first model call: of checks, or of retrieval."""
        return bool(self.checks or self.plan.input_shields) or self.needs_context

    @property
    def needs_context(self) -> bool:
        """Return whether context is retrieved before the next model call, which is the first one of the run."""
        return self.plan.retriever is not None and self.iterations == 0

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Open the first model call while the body runs, and close it if the body fails.

        With input shields it is not opened, because blocked messages must not reach the model. Neither is it before the
        plan's context is retrieved, or the history is compacted.
        """
        waits = self.plan.input_shields or self.approved or self.needs_context
        if not waits and not self.compacts_first:
            self.open_inference()
        try:
            yield
        except BaseException:
            await self.close_inference()
            raise

    async def wait_until_accepted(self) -> None:
        """Wait a short time for the provider to accept the first model call, if it is being opened.

        Raises:
            StintError: the provider refused it, except because of a conversation that can be shortened or compacted.
        """
        if self.inference is None:
            return
        left = self.deadline - asyncio.get_running_loop().time()
        try:
            raise_if_stopped()
            if not self.inference.accepted.done():
                # The wait ends at the deadline without an error, and the loop raises it. The later limit is for stops.
                accepting = self.inference.wait_until_accepted(min(ACCEPTANCE_SECONDS, left))
                await with_deadline(self.deadline + ACCEPTANCE_SECONDS, accepting)
        except BaseException as error:
            # The loop meets this refusal again when it reads the call, and shortens or compacts the conversation there.
            if isinstance(error, ContextLengthExceeded) and (self.plan.shortens or self.plan.compaction):
                return
            await self.close_inference()
            raise

    async def store_step(
        self, step: Step, ending: RunOutcome | None, details: AnswerDetails | None = None
    ) -> StepComplete:
        """Store a step, then announce it."""
        self.transcript.add_step(step, details)
        await self.log.append(step, ending, details)
        return StepComplete(step_type=step.step_type, step_id=step.step_id, step_details=step)

    async def close_inference(self) -> None:
        inference, self.inference = self.inference, None
        if inference is not None:
            await inference.close()

    def key_of(self, call: ToolCall) -> str:
        """Return the key of a call of the last answer. Models repeat ids, even within a run."""
        return f"{self.run_id}:{self.iterations}:{call.call_id}"

    def output_check(self) -> Check | None:
        """Return the function that checks an answer with the output shields."""
        shields, said = self.plan.output_shields, tuple(self.transcript.messages)

        def check(answer: AssistantAnswer) -> Awaitable[Screening]:
            return with_deadline(self.deadline, screen(shields, (*said, answer), "assistant-output"))

        return check if shields else None

    def make_outcome(
        self, status: RunStatus, error: ErrorInfo | None = None, incomplete_reason: IncompleteReason | None = None
    ) -> RunOutcome:
        return RunOutcome(
            status=status, completed_at=now(), usage=self.usage, error=error, incomplete_reason=incomplete_reason
        )

    def tool_calls_left(self) -> int:
        """Return how many more calls the server may run."""
        limit = self.plan.max_tool_calls
        return max(min(MAX_TOOL_CALLS if limit is None else limit, MAX_TOOL_CALLS) - self.tool_calls, 0)

    def output_tokens_left(self) -> int | None:
        """Return the output tokens left in this run; None if they are not limited."""
        limit, used = self.plan.max_output_tokens, self.usage.output_tokens - self.summary_tokens if self.usage else 0
        return None if limit is None else max(limit - used, 0)

    def count(self, usage: Usage | None) -> None:
        """Add the usage of one model call."""
        self.iterations += 1
        if usage is not None:
            self.usage = (self.usage or Usage()) + usage
            self.input_length.correct(usage.input_tokens)
