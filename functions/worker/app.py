"""The worker of the queue's messages (background responses, ingestions, long deletions), and of events of the buses.

Nobody waits for this function, so it may take its whole time. What it cannot do then is done at a later delivery:

    a message of the queue      a task of this system: RECEIVES deliveries, then the dead-letter queue
    an event of the bus, or a   a request of somebody who may invoke this function, answered by an event: Lambda
    direct invocation           delivers it again after an error
    an event of the inbox       an object of S3 was written or deleted

Each task can be delivered twice, or while another process still runs it. It is safe to repeat: the services take a
lease or a condition for what they do, and a task whose work is done does nothing. The last delivery ends what it cannot
complete (`last`), so that a response does not stay in progress.

A process serves several tenants, one after the other. Each event sets its own tenant, and runs in a copy of the
context; the event loop is one for all, because connections belong to it.
"""

import stint  # noqa: F401 - first, so that all packages come from the archives of the build

# isort: split

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from functools import cache, partial
from typing import Any, TypeVar

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from pydantic import ValidationError

from stint.bootstrap.restore import start
from stint.bootstrap.worker import WorkerComposition
from stint.caller import acting_as, set_tenant
from stint.domain.errors import NotFound, NotMarkedDeleted, StintError, WriteInProgress
from stint.domain.notifications.completion_events import CompletionEvent, ResponseFinished
from stint.domain.notifications.request_events import REQUEST_EVENT
from stint.domain.principals import Principal
from stint.domain.tasks import (
    TASK,
    AutomationTask,
    DeletionTask,
    IngestionTask,
    ResponseTask,
    ResumeTask,
    WaitingTask,
    WebhookTask,
)
from stint.log_keys import add_log_keys
from stint.observability import Observation, make_logger
from stint.settings import load_settings

T = TypeVar("T")

composition = WorkerComposition(load_settings)
start(composition)

RESERVE_SECONDS = 5.0
RECEIVES = 3
"""Maximum receives of a message before it is moved to the dead-letter queue (infra/aws/data.yaml)."""

OBJECT_EVENTS = "Object "
"""The types of S3's events begin with this."""

WRITE_RETRY_SECONDS = 30
"""Delay until the retry of a deletion task whose object is still being written."""


def handler(event: Any, context: Any) -> Any:
    """Handle messages of the queue, an event of the bus, or a direct invocation.

    IAM controls who may invoke this function. Deletions are accepted from the queue only. Tasks that can never succeed
    are logged and dropped. Any other failure is raised, or reported for a message, so that it is retried: twice, and
    then it is moved to a queue of failures.
    """
    # An event that names no tenant must not act for the tenant of the event before.
    set_tenant("")
    seconds = context.get_remaining_time_in_millis() / 1000 - RESERVE_SECONDS
    if isinstance(event, dict) and "Records" in event:
        # If all messages fail, they are listed as if some did: the function itself has not failed.
        processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
        take = partial(handle_message, context=context, seconds=seconds)
        return process_partial_response(event=event, record_handler=take, processor=processor, context=context)
    if isinstance(event, dict) and str(event.get("detail-type")).startswith(OBJECT_EVENTS):
        return run_observed("object", context, partial(follow_object, event))
    return answer_event(event, context, seconds)


def answer_event(event: Any, context: Any, seconds: float) -> Any:
    """Handle an event of the bus or a direct invocation, and return its completion event, or None if it was dropped."""
    answer: list[CompletionEvent | None] = []

    def work(observation: Observation) -> int:
        try:
            request = REQUEST_EVENT.validate_python(event)
        except ValidationError as error:
            return drop(error)
        set_tenant(request.tenant)
        event_id = request.id or context.aws_request_id
        add_log_keys(event_id=event_id)

        async def handle() -> CompletionEvent | None:
            deadline = asyncio.get_running_loop().time() + seconds
            # Caches of tool lists and usage sums are those of a caller's tenant.
            with acting_as(Principal(request.tenant, "event", frozenset({"use"}))):
                return await composition.make_event_requests(request.tenant).handle(request, event_id, deadline)

        finished = run_async(handle())
        answer.append(finished)
        if finished is not None:
            observation.count_finished(finished)
        return 200

    run_observed("event", context, work)
    return answer[0].model_dump(mode="json") if answer and answer[0] is not None else None


def follow_object(event: Any, _: Observation) -> int:
    """Make the document of an object of the inbox equal to it. The event's bucket is not used, only the stack's own."""
    from stint.domain.notifications.object_events import ObjectEvent  # noqa: PLC0415 - not at the start

    try:
        changed = ObjectEvent.model_validate(event)
    except ValidationError as error:
        return drop(error)
    set_tenant(changed.tenant)
    run_async(composition.compose_inbox(changed.tenant).handle(changed.detail.object.key))
    return 200


def run_observed(what: str, context: Any, work: Callable[[Observation], int]) -> None:
    """Do some work and log its result; `work` returns the status."""
    observation = Observation(context.aws_request_id, "worker")
    status = 500
    try:
        status = work(observation)
    finally:
        observation.finish_request("TASK", what, status)


def handle_message(record: SQSRecord, context: Any, seconds: float) -> None:
    """Handle a message of the queue, or drop it if it cannot be read."""
    try:
        task = TASK.validate_json(record.body)
    except ValidationError as error:
        run_observed("message", context, partial(drop, error))
        return
    set_tenant(task.tenant)
    try:
        if isinstance(task, ResponseTask):
            run_observed("response", context, partial(run_response, record, task, seconds))
        elif isinstance(task, IngestionTask):
            run_observed("ingest", context, partial(ingest_documents, record, task, seconds))
        elif isinstance(task, WaitingTask | ResumeTask):
            run_observed("waiting", context, partial(run_waiting, record, task, seconds))
        elif isinstance(task, WebhookTask):
            run_observed("webhook", context, partial(send_webhook, task))
        elif isinstance(task, AutomationTask):
            run_observed("automation", context, partial(run_automation, record, task, seconds))
        else:
            run_observed("delete", context, partial(continue_deletion, task, seconds))
    except WriteInProgress as error:
        run_async(retry_deletion(record, error))
        raise
    except StintError as error:
        make_logger().error("The message failed", extra={"error_code": error.code, "error": error.message})
        raise
    except Exception:
        make_logger().exception("The message failed unexpectedly")
        raise


def run_response(record: SQSRecord, task: ResponseTask, seconds: float, observation: Observation) -> int:
    """Run a stored response for at most `seconds`, and return the status of the outcome."""
    add_log_keys(response_id=task.response_id)
    last, first = is_last(record), receive_count(record) == 1

    async def run() -> int:
        deadline = asyncio.get_running_loop().time() + seconds
        worker = composition.make_worker(task.tenant)
        # This task was sent before its response was stored, in case nothing else would start it.
        if task.unstarted_only and first and not await worker.recovery.is_queued(task.response_id):
            return 200
        stored = await worker.handle(task.response_id, deadline, last=last)
        if stored is not None:
            observation.count_finished(ResponseFinished.of(stored))
        return 200

    return run_async(run())


def ingest_documents(record: SQSRecord, task: IngestionTask, seconds: float, _: Observation) -> int:
    """Ingest documents of a vector store for at most `seconds`. Each is tried, also if others fail."""
    add_log_keys(vector_store_id=task.vector_store_id)
    last = is_last(record)

    async def run() -> int:
        deadline = asyncio.get_running_loop().time() + seconds
        await composition.make_ingestion(task.tenant).handle_task(task, deadline, last=last)
        return 200

    return run_async(run())


def run_waiting(record: SQSRecord, task: WaitingTask | ResumeTask, seconds: float, _: Observation) -> int:
    """Run a message that waits, if it is its turn and has no request; or resume a turn that has all its results."""
    named = {"message_id": task.message_id} if isinstance(task, WaitingTask) else {"turn_id": task.turn_id}
    add_log_keys(**named)

    async def run() -> int:
        deadline = asyncio.get_running_loop().time() + seconds
        await composition.make_waiting_runs(task.tenant).handle(task, deadline, last=is_last(record))
        return 200

    return run_async(run())


def send_webhook(task: WebhookTask, _: Observation) -> int:
    """Send an event to a webhook endpoint, if it is due."""
    add_log_keys(webhook_endpoint_id=task.endpoint_id, webhook_event_id=task.event_id)
    run_async(composition.make_webhook_deliveries(task.tenant).handle(task))
    return 200


def run_automation(record: SQSRecord, task: AutomationTask, seconds: float, _: Observation) -> int:
    """Run an automation: deliver its input to a session."""
    from stint.openai_agents.automation_runs import make_automation_runs  # noqa: PLC0415 - few have automations

    async def run() -> int:
        deadline = asyncio.get_running_loop().time() + seconds
        await make_automation_runs(composition, task.tenant).handle(task, deadline, last=is_last(record))
        return 200

    return run_async(run())


def is_last(record: SQSRecord) -> bool:
    """Return whether a message is not delivered again if this delivery fails."""
    return receive_count(record) >= RECEIVES


def receive_count(record: SQSRecord) -> int:
    """Return how often a message has been received, this time included."""
    return int(record.attributes.approximate_receive_count or 1)


def continue_deletion(task: DeletionTask, seconds: float, _: Observation) -> int:
    """Delete for at most `seconds`, and return the status of the outcome.

    The task of an object without a mark is dropped: its request has failed before it could set the mark.
    """
    logger = make_logger()
    add_log_keys(**task.model_dump(exclude={"kind", "tenant"}))
    try:
        run_async(composition.deletions.continue_deletion(task, seconds))
    except NotMarkedDeleted as error:
        logger.info("The deletion task was dropped: its object is not marked", extra={"error": error.message})
    except NotFound as error:
        logger.warning("The deletion task was dropped: its object does not exist", extra={"error": error.message})
        return 400
    return 200


async def retry_deletion(record: SQSRecord, error: WriteInProgress) -> None:
    """Retry a deletion task soon, because a writer of its object has not stopped."""
    logger = make_logger()
    logger.warning("The deletion will be retried: its object cannot be deleted yet", extra={"error": error.message})
    try:
        await composition.queue.change_visibility_timeout(record.receipt_handle, WRITE_RETRY_SECONDS)
    except StintError as unavailable:
        logger.warning(
            "The message will be retried after the queue's visibility timeout", extra={"error": unavailable.message}
        )


def drop(error: ValidationError, _: Observation | None = None) -> int:
    """Log the problems of an event that is not a task of this function."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    make_logger().error(
        "The event was dropped: it is not a valid task or request of this worker", extra={"problems": problems}
    )
    return 400


@cache
def make_runner() -> asyncio.Runner:
    """Return the single event loop of the process, to which objects that outlive an event belong."""
    return asyncio.Runner()


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end in the caller's context. A runner's default is the context of the first event."""
    return make_runner().run(work, context=copy_context())
