"""The creators of automations: API keys, which each run reads again.

A run acts for a key as its record says *now*: with its scopes, models, budgets and end. What cannot be read again
creates no automation: the rights of a token or a role end with it, and no record says when.

    the key                                     the run
    exists, with the scopes that it needs       acts for it
    is unknown, revoked, or of another tenant   creator_key_revoked
    has expired                                 creator_key_expired
    was stopped, or its tenant                  creator_key_stopped, stopped
    lacks a scope                               creator_key_insufficient_scope
"""

import time
from collections.abc import Callable

from stint.caller import find_end_user, require_principal, require_scope
from stint.dataclasses import dataclass, replace
from stint.domain.errors import Forbidden
from stint.domain.openai.automations import PauseReason, StoredAutomation
from stint.domain.principals import ANONYMOUS, Principal, Scope
from stint.domain.stops import WHOLE_TENANT, stop_name
from stint.store.api_keys import ApiKeyStore
from stint.store.stops import StopStore

REASONS: dict[PauseReason, str] = {
    "creator_key_revoked": "The API key that created or last changed the automation is revoked.",
    "creator_key_expired": "The API key that created or last changed the automation has expired.",
    "creator_key_stopped": "The API key that created or last changed the automation is stopped.",
    "creator_key_insufficient_scope": "The API key that created or last changed the automation lacks the scope {!r}.",
    "stopped": "The tenant is stopped.",
}
REMEDY = "Resume the automation with an API key that may run it."


class CreatorRefused(Exception):
    """A run may not act for its creator any more."""

    def __init__(self, reason: PauseReason, scope: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.message = f"{REASONS[reason].format(scope)} {REMEDY}"


@dataclass(frozen=True, slots=True)
class CreatorKeys:
    """The creators of a tenant's automations, as they are now. Without authentication, there are no keys."""

    tenant: str
    authenticates: bool
    stops: StopStore
    get_keys: Callable[[], ApiKeyStore]

    async def read(self, stored: StoredAutomation) -> Principal:
        """Return the principal of a run. Raises CreatorRefused, StoreUnavailable."""
        stops = await self.stops.read(self.tenant)
        if WHOLE_TENANT in stops:
            raise CreatorRefused("stopped")
        if not stored.key_id and not self.authenticates:
            return replace(ANONYMOUS, call_depth=stored.call_depth)
        if stop_name("key", stored.key_id) in stops:
            raise CreatorRefused("creator_key_stopped")
        principal = await self.read_key(stored.key_id)
        needed: list[Scope] = ["use", "users:act"] if stored.end_user else ["use"]
        for scope in needed:
            if not principal.has_scope(scope):
                raise CreatorRefused("creator_key_insufficient_scope", scope)
        return replace(principal, call_depth=stored.call_depth)

    async def read_key(self, key_id: str) -> Principal:
        """Return the principal of a key as its record says now. Raises CreatorRefused."""
        found = await self.get_keys().find(key_id) if key_id else None
        if found is None or found.resource.tenant != self.tenant or found.resource.revoked_at is not None:
            raise CreatorRefused("creator_key_revoked")
        if not found.is_live(time.time()):
            raise CreatorRefused("creator_key_expired")
        return found.principal()


def require_creator(end_user: str | None, *, authenticates: bool) -> str:
    """Return the id of the caller's API key, for which an automation of an end user is to run.

    Without authentication, it is empty. Raises Forbidden if the caller has no key, or may not act for the end user.
    """
    caller = require_principal()
    if authenticates and not caller.key_id:
        raise Forbidden(
            "An automation runs when no request does, for the API key that made it, which is checked at each run. "
            "Create, change and resume automations with an API key, not with a token or an IAM role.",
            code="automation_needs_api_key",
        )
    require_end_user(end_user)
    return caller.key_id


def require_end_user(end_user: str | None) -> None:
    """Check that the caller may act for the end user of an automation. Raises Forbidden."""
    if end_user and find_end_user() != end_user:
        require_scope("users:act")
