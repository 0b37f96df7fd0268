"""Keys of the services behind tools."""

import asyncio
from collections.abc import Callable
from typing import Any

from stint.domain.errors import ToolUnavailable
from stint.domain.known_secrets import remember

Key = str | Callable[[], str | None] | None
"""A key, or a function that gives it; it is called in a thread, and may ask a secret store."""


async def find_key(name: str, own: Key, provider_data: dict[str, Any], service: str) -> str:
    """Give the caller's key, sent as `name` in the provider data, else the server's own.

    Raises:
        ToolUnavailable: there is neither.
    """
    given = provider_data.get(name)
    key = given if isinstance(given, str) and given else await asyncio.to_thread(own) if callable(own) else own
    if not key:
        raise ToolUnavailable(
            f"{service} needs an API key: configure one for the server, or send "
            f'{{"{name}": "..."}} in the header X-LlamaStack-Provider-Data'
        )
    remember({key}, in_models_text=False)
    return key
