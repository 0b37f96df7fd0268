"""The deadline of a request."""

import asyncio

from starlette.requests import Request

RESERVE_SECONDS = 2.0
WITHOUT_LAMBDA_SECONDS = 900.0


def deadline_of(request: Request) -> float:
    """Return the time of the event loop's clock at which the last event must be sent.

    In Lambda it is 2 s before the invocation ends; elsewhere it is in 15 minutes, Lambda's longest timeout.
    """
    context = request.scope.get("aws.context")
    remaining = WITHOUT_LAMBDA_SECONDS if context is None else context.get_remaining_time_in_millis() / 1000
    return asyncio.get_running_loop().time() + max(remaining - RESERVE_SECONDS, 0)
