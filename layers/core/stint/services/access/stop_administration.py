"""Stops as admins manage them: a tenant's admin those of its tenant, an admin of the operator's tenant all.

A stop ends running work and refuses new work of an object, a key or a tenant, until it is lifted. It need not have an
object: a run may be stored later, and is then stopped from the beginning. Adding and lifting may be repeated.

  the stop of          is lifted by
  an object, a key     any admin of the tenant, and the operator's
  the caller's key     another admin: otherwise it would have no effect on whoever it is meant for
  a whole tenant       an admin of the operator's tenant, who may have set it

A caller whose key was stopped lifts nothing.
"""

import logging
import time
from collections.abc import Callable

from stint.domain.errors import Forbidden, InvalidRequest, NotFound
from stint.domain.ids import is_id, is_name
from stint.domain.principals import Principal
from stint.domain.stop_requests import StopObject, StopRequest
from stint.domain.stops import StopKind, describe_stop, stop_name
from stint.services.access.api_keys import ApiKeys
from stint.services.access.key_administration import KeyAdministration
from stint.store.stops import StopStore

logger = logging.getLogger(__name__)

PREFIXES: dict[StopKind, str] = {"response": "resp", "conversation": "conv"}
"""How the ids of objects of a kind begin."""

UUIDS = frozenset[StopKind]({"session", "turn"})
"""The kinds of objects whose ids are UUIDs."""

OPERATOR_LIFTS = "Only an admin of the operator's tenant can lift the stop of a whole tenant. Ask one."
OTHERS_LIFT = "A key cannot lift its own stop. Ask another admin of the tenant."


class Stops:
    """The stops of a stack, for its operator."""

    def __init__(self, store: StopStore, keys: ApiKeys, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._keys = keys
        self._clock = clock

    async def add(self, tenant: str, kind: StopKind, identifier: str = "") -> StopObject:
        """Stop the work of an object, a key or a tenant. A stop that exists keeps its time.

        An object need not exist, because its run is stored later, or never.

        Raises:
            NotFound: the tenant has no such key.
            InvalidRequest: this is no id of an object of the kind.
            Conflict: the tenant has too many stops.
        """
        # An object need not exist yet, but a key does.
        if kind == "key":
            await self._keys.get(tenant, identifier)
        require_id_of(kind, identifier)
        name = stop_name(kind, identifier)
        stopped_at = await self._store.add(tenant, name, int(self._clock()))
        logger.warning("Work was stopped", extra={"stopped_tenant": tenant, "stop": name})
        return StopObject.of(tenant, name, stopped_at)

    async def list(self, tenant: str) -> list[StopObject]:
        """Return the stops of a tenant, the newest first."""
        found = (await self._store.read_original(tenant)).items()
        return [StopObject.of(tenant, name, at) for name, at in sorted(found, key=lambda each: (-each[1], each[0]))]

    async def lift(self, tenant: str, kind: StopKind, identifier: str = "") -> StopObject:
        """Lift a stop, and return it, without a time if there is none: an earlier attempt may have lifted it.

        Raises InvalidRequest if this is no id of an object of the kind.
        """
        require_id_of(kind, identifier)
        name = stop_name(kind, identifier)
        lifted = StopObject.of(tenant, name, await self._store.remove(tenant, name))
        if lifted.stopped_at is not None:
            logger.warning("A stop was lifted", extra={"stopped_tenant": tenant, "stop": name})
        return lifted


class StopAdministration:
    """The stops of a stack for an authenticated caller, which needs the scope `admin`."""

    def __init__(self, stops: Stops, keys: KeyAdministration) -> None:
        self._stops = stops
        self._keys = keys

    async def add(self, caller: Principal, request: StopRequest) -> StopObject:
        """Stop work. Raises Forbidden if it is another tenant's, and as `Stops.add`."""
        tenant = await self._admit(caller, request.tenant)
        return await self._stops.add(tenant, request.kind, request.id or "")

    async def list(self, caller: Principal, tenant: str | None) -> list[StopObject]:
        """Return the stops of a tenant, by default of the caller's. Raises Forbidden."""
        return await self._stops.list(await self._admit(caller, tenant))

    async def lift(self, caller: Principal, kind: StopKind, identifier: str, tenant: str | None) -> StopObject:
        """Lift a stop.

        Raises:
            NotFound: the caller may not manage the tenant.
            Forbidden: it is the stop of the caller's own key, or of its tenant, which the operator may have set, or the
                caller's key was stopped.
        """
        await self._keys.authenticate(caller)
        chosen = tenant or (identifier if kind == "tenant" else caller.tenant)
        if not self._keys.may_manage(caller, chosen) or (kind == "tenant" and identifier != chosen):
            raise NotFound("Stop", describe_stop(stop_name(kind, identifier)))
        if kind == "tenant" and not self._keys.is_operator(caller):
            raise Forbidden(OPERATOR_LIFTS)
        if kind == "key" and identifier == caller.key_id:
            raise Forbidden(OTHERS_LIFT)
        # Last: it reads the store, and the other refusals need no read.
        await self._keys.refuse_stopped(caller)
        return await self._stops.lift(chosen, kind, identifier)

    async def _admit(self, caller: Principal, tenant: str | None) -> str:
        """Return the tenant of a request. Raises Forbidden if the caller may not manage it."""
        await self._keys.authenticate(caller)
        self._keys.check_tenant(caller, tenant or caller.tenant)
        return tenant or caller.tenant


def require_id_of(kind: StopKind, identifier: str) -> None:
    """Raise InvalidRequest for an id that no object of a kind can have."""
    if kind in UUIDS and not is_id(identifier):
        raise InvalidRequest(f"{identifier!r} is not the id of a {kind}, which is a UUID.", param="id")
    if (prefix := PREFIXES.get(kind)) and not is_name(prefix, identifier):
        raise InvalidRequest(f"{identifier!r} is not the id of a {kind}, which begins with {prefix}_.", param="id")
