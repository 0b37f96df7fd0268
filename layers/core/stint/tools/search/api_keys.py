"""Keys of the services that tools use."""

import asyncio
from collections.abc import Callable
from typing import Any

from stint.domain.errors import ToolUnavailable
from stint.domain.known_secrets import remember

Key = str | Callable[[], str | None] | None
"""A key, or a function that returns it. The function is called in a thread, and may read a secret store."""


async def find_key(name: str, own: Key, provider_data: dict[str, Any], service: str) -> str:
    """Return the caller's key, which is `name` in the provider data, or else the server's own.

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
