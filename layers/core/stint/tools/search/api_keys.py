"""Keys of the services that tools use."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from stint.domain.errors import ToolUnavailable
from stint.domain.known_secrets import remember
from stint.tools.port import Invocation

Key = str | Callable[[], str | None] | None
"""A key, or a function that returns it. The function is called in a thread, and may read a secret store."""


logger = logging.getLogger(__name__)

API_KEY = "api_key"
"""The argument of an agent's toolgroup that has a key."""


async def find_key(name: str, own: Key, invocation: Invocation, service: str, choice: str = "") -> str:
    """Return the caller's key, which is `name` in the provider data, or else the agent's, or else the server's own.

    `choice` is a setting that the server's own key needs, too.

    Raises:
        ToolUnavailable: there is none of them. This is logged, because a turn tells it to its model only.
    """
    # Never an argument of the model: it could send a key that it has read somewhere.
    given = invocation.provider_data.get(name) or fixed_argument(invocation, API_KEY)
    key = given if isinstance(given, str) and given else await asyncio.to_thread(own) if callable(own) else own
    if not key:
        settings = f"{choice} and {name.upper()}" if choice else name.upper()
        error = ToolUnavailable(
            f"{service} needs an API key. The operator sets {settings} (in AWS, the key is in the secret of the "
            f'parameter ToolsSecretArn), or the caller sends {{"{name}": "..."}} in the header '
            "X-LlamaStack-Provider-Data."
        )
        logger.warning(error.message)
        raise error
    remember({key}, in_models_text=False)
    return key


def fixed_argument(invocation: Invocation, name: str) -> Any:
    """Return an argument of the agent or the turn; None for one of the model."""
    return invocation.arguments.get(name) if name in invocation.fixed else None
