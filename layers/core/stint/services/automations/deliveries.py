"""One delivery of an automation's input to a session, and how it ends.

A delivery is an attempt of a request whose id is that of its invocation, exactly as one with an idempotency key: what
an earlier delivery of the same invocation has made is found, and not made again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from stint.caller import RequestAttempt, find_attempt, set_attempt
from stint.domain.errors import (
    DeadlineExceeded,
    Interrupted,
    ModelOverloaded,
    NotFound,
    RateLimitExceeded,
    RequestRunning,
    StintError,
    StoreUnavailable,
    Unexpected,
)
from stint.domain.openai.automations import AutomationTarget, ExistingSessionTarget, InvocationOutcome, PauseReason
from stint.domain.principals import Principal
from stint.services.automations.creators import CreatorRefused
from stint.services.automations.targets import IsOwn, PendingDelivery, Targets
from stint.services.runs.run_handle import RequestContext
from stint.services.runs.senders import acting_for

logger = logging.getLogger(__name__)

TEMPORARY = (
    DeadlineExceeded,
    Interrupted,
    ModelOverloaded,
    RateLimitExceeded,
    RequestRunning,
    StoreUnavailable,
    Unexpected,
)
"""Errors that another delivery may not meet."""

GONE = ("agent_not_found", "session_not_found")
"""The codes of the errors for a target that was deleted."""

NO_SESSION = "The session of the target does not exist any more. Create another automation."
NO_AGENT = "The saved agent of the target does not exist any more. Update the target, and resume the automation."

FindPrincipal = Callable[[], Awaitable[Principal]]
"""A function that returns the principal of a run. Raises CreatorRefused, StoreUnavailable."""


@contextmanager
def acting_in_attempt(principal: Principal, end_user: str | None, attempt: RequestAttempt) -> Iterator[None]:
    """Run the body as a request of a caller, who acts for an end user."""
    before = find_attempt()
    with acting_for(principal.to_context(), end_user):
        set_attempt(attempt)
        try:
            yield
        finally:
            set_attempt(before)


async def deliver(
    targets: Targets,
    target: AutomationTarget,
    find_principal: FindPrincipal,
    end_user: str | None,
    attempt: RequestAttempt,
    *,
    is_own: IsOwn,
    deadline: float,
) -> InvocationOutcome:
    """Deliver the input of a target, and return the outcome. Raises StintError if another delivery may have another."""
    try:
        principal = await find_principal()
        with acting_in_attempt(principal, end_user, attempt):
            context = RequestContext(deadline, attempt)
            if isinstance(target, ExistingSessionTarget):
                await targets.send(target, context, is_own)
                return InvocationOutcome(status="completed", session_id=target.session_id)
            return InvocationOutcome(status="completed", session_id=await targets.create_session(target, context))
    except CreatorRefused as refused:
        return InvocationOutcome.failed(refused.reason, refused.message)
    except PendingDelivery:
        return InvocationOutcome(status="skipped", session_id=session_of(target))
    except TEMPORARY:
        raise
    except StintError as error:
        logger.warning("A delivery failed", extra={"error_code": error.code, "error": error.message})
        return fail(target, error)


def fail(target: AutomationTarget, error: StintError) -> InvocationOutcome:
    """Return the outcome of a delivery that has failed for good."""
    code, message = error.code, error.message
    if isinstance(error, NotFound) and error.code in GONE:
        existing = isinstance(target, ExistingSessionTarget)
        reason: PauseReason = "target_session_failed" if existing else "target_agent_deleted"
        code, message = reason, NO_SESSION if existing else NO_AGENT
    return InvocationOutcome.failed(code, message).model_copy(update={"session_id": session_of(target)})


def session_of(target: AutomationTarget) -> str | None:
    return target.session_id if isinstance(target, ExistingSessionTarget) else None


async def deliver_last(delivery: Awaitable[InvocationOutcome]) -> InvocationOutcome:
    """Return the outcome of a delivery after which there is no other one: any error is that of the invocation."""
    try:
        return await delivery
    except asyncio.CancelledError:
        raise
    except StintError as error:
        return InvocationOutcome.failed(error.code, error.message)
    except Exception:
        logger.exception("The last delivery failed unexpectedly")
        unexpected = Unexpected()
        return InvocationOutcome.failed(unexpected.code, unexpected.message)
