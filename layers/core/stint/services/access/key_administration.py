"""API keys as admins manage them: a tenant's admin its own ones, an admin of the operator's tenant all.

No caller passes on more than it has. Otherwise a stolen or limited key could make itself unlimited:

  rule                                               caller: tenant's admin   operator's admin
  keys of other tenants                              do not exist             as its own
  scopes, models and budgets of the new key          at most its own          any
  end of the new key, if the caller's key has one    at most that             at most that
  end of the new key, if the caller has no key       within `max_key_days`    within `max_key_days`
  a caller whose key was stopped                     gets no secret           gets no secret

The end holds for operators, too: a key that must end would otherwise make one that does not. A caller with a token or a
role is removed at its issuer, which ends no keys that it has made. Rotating is the same as creating, because it hands
out a secret; a caller may always rotate its own key, which gives it nothing new.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from fnmatch import fnmatchcase

from stint.caller import find_attempt, next_object_id
from stint.domain.api_keys import ApiKeyObject, ApiKeyWithSecret, CreateApiKeyRequest, NewApiKey
from stint.domain.errors import Forbidden, NotFound, Stopped, Unauthenticated
from stint.domain.expiry import DAY_SECONDS
from stint.domain.ids import hex_of
from stint.domain.paging import Page
from stint.domain.principals import ANONYMOUS, Principal
from stint.domain.stops import stop_name
from stint.services.access.api_keys import ApiKeys
from stint.store.stops import StopStore

ENDS_TOO_LATE = (
    "Keys that a token or a role creates or rotates end at {} at the latest. Send an earlier expires_at, or use the "
    "command `python -m stint.cli keys`."
)
NO_CALLERS = (
    "Keys and stops cannot be managed by this API, because the stack was built with AUTH=none, so that anyone could. "
    "Use the commands `python -m stint.cli keys` and `python -m stint.cli stop`."
)
NOT_COVERED = "The key would have more rights than its creator: {}. Ask an admin of the operator's tenant."
ENDS_LATER = (
    "Keys that a key with an end creates or rotates end no later, here at {}. Send such an expires_at, or use the "
    "command `python -m stint.cli keys`."
)


class KeyAdministration:
    """The keys of a stack for an authenticated caller, which needs the scope `admin`.

    An admin of the operator's tenant may do everything. Others manage the keys of their own tenant, and pass on at most
    the rights that they have. A key that was stopped gets no other one. The record of the caller's own key is read each
    time, since the authorizer's answer may be older than its revocation.
    """

    def __init__(
        self,
        keys: ApiKeys,
        operator_tenant: str,
        stops: StopStore,
        max_key_days: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._keys = keys
        self._max_seconds = max_key_days * DAY_SECONDS
        self._clock = clock
        self._stops = stops
        self._operator_tenant = operator_tenant

    async def create(self, caller: Principal, request: NewApiKey) -> ApiKeyWithSecret:
        """Create a key.

        One that a caller with a token or a role creates ends after `max_key_days`, or earlier if the request says so.
        Raises Forbidden if it is another tenant's, or has rights that the caller lacks, or the caller's was stopped.
        If a request with the same idempotency key has created it, and its secret was not returned, it gets another one.
        """
        # The record, not what the authorizer said: its answers are cached, and the key may have been revoked since.
        own = await self.authenticate(caller)
        await self.refuse_stopped(caller)
        wanted = request.of_tenant(caller.tenant)
        self.check_tenant(caller, wanted.tenant)
        if not caller.key_id and wanted.expires_at is None:
            wanted = wanted.model_copy(update={"expires_at": self._latest_end()})
        self._refuse_excess(caller, own, wanted)
        key_id = hex_of(next_object_id())
        # The secret is stored nowhere, so a repetition gets another one.
        if find_attempt().repeated:
            with suppress(NotFound):
                return await self._keys.rotate(wanted.tenant, key_id)
        return await self._keys.create(wanted, key_id)

    async def get(self, caller: Principal, key_id: str) -> ApiKeyObject:
        await self.authenticate(caller)
        return await self._keys.get(self._scope(caller), key_id)

    async def list(self, caller: Principal, tenant: str | None, after: str | None, limit: int) -> Page[ApiKeyObject]:
        """Return keys of a tenant, the newest first, by default of the caller's. Raises Forbidden."""
        await self.authenticate(caller)
        self.check_tenant(caller, tenant or caller.tenant)
        return await self._keys.list_page(tenant or caller.tenant, after, limit)

    async def revoke(self, caller: Principal, key_id: str) -> ApiKeyObject:
        await self.authenticate(caller)
        return await self._keys.revoke(self._scope(caller), key_id)

    async def rotate(self, caller: Principal, key_id: str, overlap_seconds: int) -> ApiKeyWithSecret:
        """Replace a key's secret.

        Raises Forbidden if the caller's was stopped, or it would get the secret of a key with more rights.
        """
        own = await self.authenticate(caller)
        await self.refuse_stopped(caller)
        # A key of another tenant is not found, so its existence stays unknown.
        found = await self._keys.get(self._scope(caller), key_id)
        # Its own key has the caller's own rights.
        if found.id != caller.key_id:
            self._refuse_excess(caller, own, found)
        return await self._keys.rotate(self._scope(caller), key_id, overlap_seconds)

    async def authenticate(self, caller: Principal) -> ApiKeyObject | None:
        """Return the caller's own key, None if it has a token. Raises Unauthenticated if the key has ended."""
        if caller == ANONYMOUS:
            raise Forbidden(NO_CALLERS)
        if not caller.key_id:
            return None
        own = await self._keys.find_live(caller.key_id)
        if own is None:
            raise Unauthenticated("The API key of this request is revoked or expired.")
        return own

    async def refuse_stopped(self, caller: Principal) -> None:
        """Raise Stopped if the caller's key was stopped: with another one, it could go on, or lift the stop."""
        if not caller.key_id:
            return
        if stop_name("key", caller.key_id) in await self._stops.read_original(caller.tenant):
            raise Stopped(f"The API key {caller.key_id} was stopped by an admin. Ask another one to lift the stop.")

    def _refuse_excess(
        self, caller: Principal, own: ApiKeyObject | None, key: ApiKeyObject | CreateApiKeyRequest
    ) -> None:
        """Raise Forbidden if a key has more rights than the caller, or ends later than one of the caller may.

        The end of the caller's own key holds for operators, too: otherwise a key that a token has created, and that
        must end, would create one that never does.
        """
        latest = self._latest_end()
        # Also for an end that the request names.
        if not caller.key_id and (key.expires_at is None or key.expires_at > latest):
            raise Forbidden(ENDS_TOO_LATE.format(latest), code="insufficient_rights", param="expires_at")
        expires_at = own.expires_at if own else None
        if not self.is_operator(caller):
            refuse_excess(caller, key)
        refuse_later_end(expires_at, key)

    def _latest_end(self) -> int:
        """Return the latest end of a key that a caller with a token or a role creates.

        Such a caller is removed at its issuer or in IAM, which ends no keys.
        """
        return int(self._clock()) + self._max_seconds

    def is_operator(self, caller: Principal) -> bool:
        """Return whether a caller is of the operator's tenant."""
        return caller.tenant == self._operator_tenant

    def _scope(self, caller: Principal) -> str | None:
        """Return the tenant whose keys the caller manages, None for all."""
        return None if self.is_operator(caller) else caller.tenant

    def may_manage(self, caller: Principal, tenant: str) -> bool:
        return tenant == caller.tenant or self.is_operator(caller)

    def check_tenant(self, caller: Principal, tenant: str) -> None:
        """Raise Forbidden if the caller may not manage a tenant."""
        if not self.may_manage(caller, tenant):
            raise Forbidden(f"An admin of the tenant {caller.tenant} cannot manage the tenant {tenant}.")


def refuse_excess(grantor: Principal, key: ApiKeyObject | CreateApiKeyRequest) -> None:
    """Raise Forbidden if a key has a right that the grantor lacks."""
    if missing := [scope for scope in key.scopes if not grantor.has_scope(scope)]:
        raise excess(f"the scope {missing[0]}")
    # No patterns mean all models.
    if grantor.models and not key.models:
        raise excess(f"all models, instead of {', '.join(grantor.models)}")
    for pattern in key.models if grantor.models else ():
        if not any(covers(own, pattern) for own in grantor.models):
            raise excess(f"the models {pattern}, instead of {', '.join(grantor.models)}")
    for name, own in grantor.budgets.model_dump(exclude_none=True).items():
        limit = getattr(key.budgets, name)
        # A budget that the new key lacks would be no limit.
        if limit is None or limit > own:
            raise excess(f"{name} {'without limit' if limit is None else limit}, instead of {own}")


def refuse_later_end(expires_at: int | None, key: ApiKeyObject | CreateApiKeyRequest) -> None:
    """Raise Forbidden if a key ends later than the grantor's own one, whatever rights it has. None: it has no end."""
    if expires_at is not None and (key.expires_at is None or key.expires_at > expires_at):
        raise Forbidden(ENDS_LATER.format(expires_at), code="insufficient_rights", param="expires_at")


def covers(pattern: str, other: str) -> bool:
    """Return whether a pattern matches every model id that another one does; False if that is not certain.

    The literal characters of `other` match those of `pattern`, and `*` also matches the wildcards of `other`. Sets in
    brackets are not compared.
    """
    if pattern == other:
        return True
    if not any(wildcard in other for wildcard in "*?["):
        return fnmatchcase(other, pattern)
    return not any(wildcard in pattern for wildcard in "?[") and "[" not in other and fnmatchcase(other, pattern)


def excess(what: str) -> Forbidden:
    return Forbidden(NOT_COVERED.format(what), code="insufficient_rights")
