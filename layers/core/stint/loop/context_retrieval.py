"""The step of a run that retrieves context, with the checks of the tool's shields."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime

from stint.dataclasses import dataclass, replace
from stint.domain.content import Content
from stint.domain.ids import new_id
from stint.domain.inference import ModelMessage, ToolResult
from stint.domain.run_events import StepEvent, StepStart
from stint.domain.schema import now
from stint.domain.steps import MemoryRetrievalStep
from stint.loop.model_call import with_deadline
from stint.loop.retrieval import RetrievedContext, Retriever
from stint.loop.run import Run
from stint.loop.screening import Screening, shield_start
from stint.loop.tool_shields import ToolTouchpoint, blocked_text, screen_tool


async def retrieve_context(run: Run, retriever: Retriever) -> AsyncGenerator[StepEvent, None]:
    """Add context for the user's messages as a step. If a shield blocks them or the context, the step says so."""
    run.log.check()
    checker = ContextChecks(run, retriever)
    content: Content | None = None
    if retriever.shields.input:
        step_id = new_id()
        yield shield_start(step_id, checker.metadata("tool-input"))
        run.transcript.close()
        found = await checker.check(run.transcript.messages, "tool-input", step_id)
        yield await run.store_step(found.to_step(run.run_id), None)
        content = blocked_text(found.violation, "tool-input") if found.violation else None
    step_id, check_id, started_at = new_id(), new_id(), now()
    yield StepStart(step_type="memory_retrieval", step_id=step_id)
    checked: Screening | None = None
    context = RetrievedContext((), content or "")
    if content is None:
        retrieving = retriever.retrieve(run.transcript.messages, f"{run.run_id}:0:{step_id}")
        context = await with_deadline(run.deadline, retrieving)
        if retriever.shields.output:
            messages = [ToolResult("", retriever.tool_name, context.content)]
            checked = await checker.check(messages, "tool-output", check_id)
            if checked.violation is not None:
                context = replace(context, content=blocked_text(checked.violation, "tool-output"))
    yield await run.store_step(retrieval_step(run.run_id, step_id, started_at, context), None)
    if checked is not None:
        yield shield_start(check_id, checker.metadata("tool-output"))
        yield await run.store_step(checked.to_step(run.run_id), None)


@dataclass(frozen=True, slots=True)
class ContextChecks:
    """The checks of a retrieval."""

    run: Run
    retriever: Retriever

    def metadata(self, touchpoint: ToolTouchpoint) -> dict[str, str]:
        return {"touchpoint": touchpoint, "tool_name": self.retriever.tool_name}

    async def check(self, messages: Sequence[ModelMessage], touchpoint: ToolTouchpoint, step_id: str) -> Screening:
        """Check the last messages with the shields of the tool."""
        shields = self.retriever.shields
        bound = shields.input if touchpoint == "tool-input" else shields.output
        names = {"tool_name": self.retriever.tool_name}
        checking = screen_tool(bound, messages, touchpoint, names)
        return replace(await with_deadline(self.run.deadline, checking), step_id=step_id)


def retrieval_step(run_id: str, step_id: str, started_at: datetime, context: RetrievedContext) -> MemoryRetrievalStep:
    return MemoryRetrievalStep(
        turn_id=run_id,
        step_id=step_id,
        started_at=started_at,
        completed_at=now(),
        vector_db_ids=",".join(context.vector_db_ids),
        inserted_context=context.content,
    )
