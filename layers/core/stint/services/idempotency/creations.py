"""Creations of agents, sessions and conversations: a client's retry finds what its first attempt created.

OpenAI's and Llama Stack's clients repeat a request whose answer was lost, and send no key with it, only the number of
the attempt. Without more, each retry would create another object.

    the request                        what happens
    with an idempotency key            the key's record has the id: found, or created under it
    from no client that retries        created
    a first attempt                    created, and the attempt is stored beside it
    a retry, an attempt is stored      the first of its objects that this retry can claim
    a retry, nothing can be claimed    created

A fingerprint is no key: two clients may send equal requests, and each must get an object of its own. So a retry claims
what it takes, and no other retry of the same count can take it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from stint.caller import RequestAttempt, create_once, find_attempt
from stint.dataclasses import dataclass
from stint.domain.errors import NotFound, StintError
from stint.domain.ids import new_id
from stint.store.creation_attempts import CreationAttempts
from stint.store.parallel import value_of
from stint.store.retry_claims import RetryClaims

logger = logging.getLogger(__name__)

MOST_CLAIMS = 5
"""Maximum objects that a retry tries to claim. Each attempt costs a write unit."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Creations:
    """The creations of a tenant's callers."""

    tenant: str
    attempts: CreationAttempts
    claims: RetryClaims

    async def run(self, find: Callable[[str], Awaitable[T]], create: Callable[[str], Awaitable[T]]) -> T:
        """Return what an earlier attempt of the current request created, or create it.

        `create` gets a new id. `find` returns the object with an id, and raises NotFound if there is none that a retry
        may get. The attempt is stored beside the object, with one unit, unless it has an idempotency key, whose record
        has the id. Raises as `create` does.
        """
        attempt = find_attempt()
        # With an idempotency key, its record already says which object is meant.
        if attempt.object_id:
            return await create_once(find, create)
        if not attempt.fingerprint:
            return await create(new_id())
        if attempt.retry_count:
            for object_id in (await self.attempts.find(self.tenant, attempt))[:MOST_CLAIMS]:
                try:
                    found = await find(object_id)
                except NotFound:
                    continue
                # Two clients may send equal requests. A claim makes sure that only one of them gets this object.
                if await self.claims.put(self.tenant, object_id, attempt.retry_count):
                    return found
        object_id = new_id()
        # At the same time: the attempt is needed by a retry only. Without the object, `find` ignores it.
        created, _ = await asyncio.gather(create(object_id), self.note(attempt, object_id), return_exceptions=True)
        return value_of(created)

    async def note(self, attempt: RequestAttempt, object_id: str) -> None:
        """Store an attempt. A failure is only logged: a retry then creates another object."""
        try:
            await self.attempts.put(self.tenant, attempt, object_id)
        except StintError as error:
            logger.warning("The attempt of a creation was not stored", extra={"error": error.message})
