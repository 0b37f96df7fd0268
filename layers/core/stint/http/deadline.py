"""How long a request may still take."""

import asyncio

from starlette.requests import Request

RESERVE_SECONDS = 2.0
WITHOUT_LAMBDA_SECONDS = 900.0


def deadline_of(request: Request) -> float:
    """Give the time of the event loop's clock at which the last event must leave.

    Under Lambda that is 2 s before the invocation ends; elsewhere 15 minutes, Lambda's longest time-out.
    """
    context = request.scope.get("aws.context")
    remaining = WITHOUT_LAMBDA_SECONDS if context is None else context.get_remaining_time_in_millis() / 1000
    return asyncio.get_running_loop().time() + max(remaining - RESERVE_SECONDS, 0)
