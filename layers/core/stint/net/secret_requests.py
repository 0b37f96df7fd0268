"""Requests that carry a secret to a URL which a caller chose: tokens, and events with a signature.

The guard checks the URL when it is stored, and again at each request, because the address of its host may change.
Plain HTTP is allowed only inside, to hosts that the operator allows: `make run` allows this machine. A redirect is not
followed, since it would carry the secret to a host that nobody has named.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import httpx

from stint.domain.errors import InvalidRequest, UnresolvableURL
from stint.net.guard import MAX_BYTES, Guard
from stint.net.urls import parse_url

SECONDS = 10.0
"""Seconds of a request, from the resolution of the host to the end of the block that reads the answer."""


class EndpointFailed(Exception):
    """An endpoint gave no usable answer. The message has neither its URL nor what was sent to it."""


@asynccontextmanager
async def open_client(
    guard: Guard, url: str, headers: Mapping[str, str], max_bytes: int = MAX_BYTES
) -> AsyncGenerator[httpx.AsyncClient, None]:
    """Yield a client for one request to a URL. What fails in the block raises EndpointFailed."""
    try:
        async with asyncio.timeout(SECONDS):
            await guard.check_secret_target(url)
            # The name may have moved outside since its check, where plain HTTP would show the secret.
            inside = parse_url(url).scheme != "https"
            async with guard.client(timeout=SECONDS, max_bytes=max_bytes, headers=headers, inside=inside) as client:
                yield client
    except (TimeoutError, httpx.TimeoutException):
        raise EndpointFailed(f"it did not answer within {SECONDS:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise EndpointFailed(f"the connection failed ({type(error).__name__})") from None
    except UnresolvableURL:
        raise EndpointFailed("its host has no address, or it redirects to an invalid URL") from None
    except InvalidRequest as error:
        raise EndpointFailed(f"the request is refused ({error.code})") from None


async def check_target(guard: Guard, url: str, param: str) -> None:
    """Check a URL before it is stored. A host that has no address yet is accepted, because each request checks again.

    Raises:
        InvalidRequest: secrets may not be sent to the URL. `param` is the field that has it.
    """
    try:
        await guard.check_secret_target(url)
    except InvalidRequest as error:
        if isinstance(error, UnresolvableURL) and url.startswith("https://"):
            return
        error.param = param
        raise
