"""Requests to webhook endpoints, whose URLs callers choose.

The guard checks the URL at each request. Plain HTTP is allowed only inside, to hosts that the operator allows: `make
run` allows this machine. A redirect is not followed, since it would carry a signed event to a host that nobody has
named, and the body of the answer is not read.
"""

import asyncio
from collections.abc import Mapping

import httpx

from stint.domain.errors import InvalidRequest, UnresolvableURL
from stint.net.guard import Guard

SECONDS = 10.0
"""Seconds of a request, from the resolution of the host to the head of the answer."""

HEADERS = {"Content-Type": "application/json", "User-Agent": "Stint-Webhooks"}


class EndpointUnreachable(Exception):
    """An endpoint gave no answer. The message has neither its URL nor what it sent."""


async def post_webhook(guard: Guard, url: str, headers: Mapping[str, str], body: bytes) -> int:
    """Send an event, and return the status of the answer. Raises EndpointUnreachable."""
    try:
        async with asyncio.timeout(SECONDS), guard.client(timeout=SECONDS, headers=HEADERS) as client:
            await guard.check_secret_target(url)
            async with client.stream("POST", url, headers=headers, content=body) as response:
                return response.status_code
    except (TimeoutError, httpx.TimeoutException):
        raise EndpointUnreachable(f"it did not answer within {SECONDS:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise EndpointUnreachable(f"the connection failed ({type(error).__name__})") from None
    except UnresolvableURL:
        raise EndpointUnreachable("its host has no address, or it redirects to an invalid URL") from None
    except InvalidRequest as error:
        raise EndpointUnreachable(f"the request is refused ({error.code})") from None
