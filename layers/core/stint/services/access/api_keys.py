"""API keys: create, list, revoke and rotate them, and find the principal of one that was sent.

A key is `stk_<id>_<secret>`. The id is the key of its record, and the record has a hash of the secret, so a copy of the
table opens nothing. A rotation makes another secret for the same id, with the same rights:

  state                      current secret   previous secret   rotate               revoke
  live                       valid            none              valid, new secret    revoked
  live, within the overlap   valid            valid             valid, new secret    revoked
  live, after the overlap    valid            refused           valid, new secret    revoked
  expired                    refused          refused           Conflict             revoked
  revoked                    refused          refused           Conflict             revoked, at its first time

A rotation with an overlap keeps the secret that was current, and no earlier one. It writes only if the secret is still
the one that was read, so of two rotations at the same time one fails, instead of handing out a secret that is replaced
already.
"""

import time
from collections.abc import Callable

from stint.domain.api_keys import (
    ApiKeyObject,
    ApiKeyWithSecret,
    CreateApiKeyRequest,
    StoredApiKey,
    hash_of,
    new_secret,
    parse_key,
    sort_keys,
    with_secret,
)
from stint.domain.errors import Conflict, InvalidRequest
from stint.domain.ids import hex_of, new_id
from stint.domain.paging import Page
from stint.domain.principals import Principal
from stint.store.api_keys import ApiKeyStore


class ApiKeys:
    """The keys of a stack. Methods with a `tenant` treat keys of other tenants as missing; None means any tenant.

    The authorizer's answers are cached by API Gateway, so a revoked key may work until an entry of that cache ends.
    """

    def __init__(self, store: ApiKeyStore, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    async def create(self, request: CreateApiKeyRequest, key_id: str = "") -> ApiKeyWithSecret:
        """Create a key, under an id that may be given. The result is the only place that has its secret."""
        now = int(self._clock())
        if request.expires_at is not None and request.expires_at <= now:
            raise InvalidRequest("expires_at is in the past. Send a later time.", param="expires_at")
        # The secret has 256 random bits, so a fast hash of it is enough.
        key_id, secret = key_id or hex_of(new_id()), new_secret()
        fields = dict(request) | {"subject": request.subject or key_id}
        resource = ApiKeyObject(id=key_id, created_at=now, **fields)
        await self._store.create(StoredApiKey(resource, hash_of(secret)))
        return with_secret(resource, secret)

    async def get(self, tenant: str | None, key_id: str) -> ApiKeyObject:
        return (await self._store.get(tenant, key_id)).resource

    async def list_page(self, tenant: str, after: str | None, limit: int) -> Page[ApiKeyObject]:
        """Return up to `limit` keys of a tenant, the newest first, those that were created before the key `after`.

        It has also those that ended in the last 30 days.
        """
        newest = sorted(await self._store.list_ids(tenant), reverse=True)
        older = [key_id for key_id in newest if after is None or key_id < after]
        return Page(sort_keys(await self._store.get_many(older[:limit])), len(older) > limit)

    async def find_live(self, key_id: str) -> ApiKeyObject | None:
        """Read a key. Returns None if it is missing, revoked or expired."""
        found = await self._store.find(key_id)
        return found.resource if found and found.is_live(self._clock()) else None

    async def revoke(self, tenant: str | None, key_id: str) -> ApiKeyObject:
        """Make a key invalid for ever. A key that is revoked already is returned as it is."""
        found = await self._store.get(tenant, key_id)
        return (await self._store.revoke(found, int(self._clock()))).resource

    async def rotate(self, tenant: str | None, key_id: str, overlap_seconds: int = 0) -> ApiKeyWithSecret:
        """Replace a key's secret. The previous one stays valid for the overlap, and those before it end at once."""
        found = await self._store.get(tenant, key_id)
        now = self._clock()
        if not found.is_live(now):
            raise Conflict(f"API key {key_id} is revoked or expired. Create another key.")
        secret = new_secret()
        changed = await self._store.rotate(found, hash_of(secret), int(now), overlap_seconds)
        return with_secret(changed.resource, secret)

    async def verify(self, key: str) -> Principal | None:
        """Return the principal of a valid key, or None. One read, and none for a text that is not a key."""
        parsed = parse_key(key)
        found = await self._store.find(parsed[0]) if parsed else None
        if parsed is None or found is None or not found.accepts(parsed[1], self._clock()):
            return None
        return found.principal()
