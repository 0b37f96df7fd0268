"""Keys by which a provider finds the calls of a conversation in one of its caches.

OpenAI sends calls with the same `prompt_cache_key` and the same beginning to the same machine, which may still have it:
https://platform.openai.com/docs/guides/prompt-caching. The key is an HMAC of the tenant and of what its calls have in
common, so the provider learns no name and no id, and no tenant can choose the key of another. Its secret is that of the
tenant's opaque texts, which a process reads once, and only for a model whose server takes a key.
"""

import hashlib
import hmac
import logging
from collections.abc import Awaitable, Callable
from typing import Literal

from stint.caller import find_principal
from stint.dataclasses import dataclass, field
from stint.domain.errors import StintError
from stint.models.port import ChatModel

logger = logging.getLogger(__name__)

DIGITS = 32
"""Hexadecimal digits of a key, 128 bits. OpenAI accepts 64 characters."""

FindCacheKeys = Callable[[ChatModel], Awaitable["CacheKeys | None"]]
"""A function that returns the keys for a model; None if its server takes none, or they cannot be derived."""

Kind = Literal["prompt_cache_key", "session", "conversation", "response", "api_key", "subject"]
"""What calls have in common: the key that their caller sends, a session, a conversation, the first response of a chain,
or their caller."""


@dataclass(slots=True)
class CacheKeys:
    """The cache keys of a tenant. `read_secret` reads its secret from the store."""

    tenant: str
    read_secret: Callable[[], Awaitable[bytes]] = field(repr=False)
    secret: bytes = field(default=b"", repr=False)

    async def prepare(self) -> bool:
        """Read the secret, once, and return whether there are keys: calls have none if it cannot be read."""
        if not self.secret:
            try:
                self.secret = await self.read_secret()
            except StintError as error:
                logger.warning("Model calls have no cache key", extra={"error": error.message})
        return bool(self.secret)

    def derive(self, kind: Kind, value: str) -> str:
        """Return the key of calls. The secret must have been read."""
        if not self.secret:
            raise RuntimeError("The secret was not read before a cache key was derived.")
        text = f"stint cache key\0{self.tenant}\0{kind}\0{value}"
        return hmac.digest(self.secret, text.encode(), hashlib.sha256).hex()[:DIGITS]

    def derive_of_caller(self, prompt_cache_key: str | None = None) -> str:
        """Return the key of a single call: by the key that its caller sends, or by its caller."""
        if prompt_cache_key:
            return self.derive("prompt_cache_key", prompt_cache_key)
        principal = find_principal()
        if principal is not None and principal.key_id:
            return self.derive("api_key", principal.key_id)
        return self.derive("subject", principal.subject if principal is not None else "")
