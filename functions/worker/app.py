"""Asynchronous invocations: finishes deletions that took longer than a request."""

from typing import Any

from pydantic import ValidationError

from stint.bootstrap import make_deletions
from stint.domain.errors import NotFound
from stint.domain.tasks import DeletionTask
from stint.observability import Observation, make_logger

RESERVE_SECONDS = 5.0


def handler(event: Any, context: Any) -> None:
    """Do a task; what is left of it is handed to another invocation.

    An event that can never be done is logged and dropped. Any other failure is raised: Lambda tries twice more, and
    then leaves the event in the queue of failures.
    """
    observation = Observation(context.aws_request_id, "worker")
    status = 500
    try:
        status = work(event, context.get_remaining_time_in_millis() / 1000 - RESERVE_SECONDS)
    finally:
        observation.end("TASK", "delete", status)


def work(event: Any, seconds: float) -> int:
    """Do a task for so many seconds, and give the status of the outcome."""
    logger = make_logger()
    try:
        task = DeletionTask.model_validate(event)
        logger.thread_safe_append_keys(agent_id=task.agent_id, session_id=task.session_id)
        make_deletions().proceed(task, seconds)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        logger.error("The event is no task of this worker and is dropped", extra={"problems": problems})
        return 400
    except NotFound as error:
        logger.error("The task names nothing that can be deleted and is dropped", extra={"error": error.message})
        return 400
    return 200
