import pytest
from infra.local.engine import Engine
from tests.store.conftest import Cloud

from stint.domain.api_keys import NewApiKey
from stint.domain.errors import Forbidden, InvalidRequest, NotFound, Stopped, Unauthenticated
from stint.domain.ids import new_id, new_name
from stint.domain.principals import ANONYMOUS, Principal
from stint.domain.stop_requests import StopRequest
from stint.domain.stops import StopKind
from stint.services.access.api_keys import ApiKeys
from stint.services.access.key_administration import KeyAdministration
from stint.services.access.stop_administration import StopAdministration, Stops
from stint.store.api_keys import ApiKeyStore
from stint.store.table import Table


class Administration:
    """The use cases, two tenants and the operator's, and a clock that a test moves."""

    def __init__(self, cloud: Cloud, table: str, tenant: str) -> None:
        self.now = 1_000_000_000.0
        self.tenant, self.other, self.operators = tenant, f"{tenant}-2", f"{tenant}-0"
        self.keys = ApiKeys(ApiKeyStore(Table(cloud.client, table)), lambda: self.now)
        self.store = cloud.store.stops
        self.stops = Stops(self.store, self.keys, lambda: self.now)
        self.api = StopAdministration(self.stops, KeyAdministration(self.keys, self.operators, self.store, 90))

    async def admin(self, tenant: str) -> Principal:
        """Return a caller with a stored key."""
        request = NewApiKey.model_validate({"scopes": ["use", "admin"]}).of_tenant(tenant)
        principal = await self.keys.verify((await self.keys.create(request)).key)
        assert principal
        return principal

    async def stop(self, caller: Principal, **fields: object) -> None:
        await self.api.add(caller, StopRequest.model_validate(fields))


@pytest.fixture
def administration(cloud: Cloud, tenant: str, engine: Engine) -> Administration:
    return Administration(cloud, engine.outputs["KeysTableName"], tenant)


async def test_a_tenants_admin_stops_sessions_keys_and_its_tenant(administration: Administration) -> None:
    api, caller, session = administration.api, await administration.admin(administration.tenant), new_id()

    await administration.stop(caller, kind="session", id=session)
    administration.now += 1
    await administration.stop(caller, kind="key", id=caller.key_id)
    administration.now += 1
    await administration.stop(caller, kind="tenant")

    listed = await api.list(caller, None)
    names = [(stop.kind, stop.id, (stop.stopped_at or 0) - 1_000_000_000) for stop in listed]
    assert names == [("tenant", caller.tenant, 2), ("key", caller.key_id, 1), ("session", session, 0)]
    operator = await administration.admin(administration.operators)
    for stop in listed:
        assert await api.lift(operator, stop.kind, stop.id, caller.tenant) == stop
    assert await api.list(caller, None) == []


async def test_a_stopped_key_gets_no_other_key_and_lifts_no_stop(administration: Administration) -> None:
    keys = KeyAdministration(administration.keys, administration.operators, administration.store, 90)
    caller = await administration.admin(administration.tenant)
    colleague, session = await administration.admin(administration.tenant), new_id()
    await administration.stop(colleague, kind="session", id=session)
    await administration.stop(colleague, kind="key", id=caller.key_id)

    with pytest.raises(Stopped):
        await keys.create(caller, NewApiKey.model_validate({"scopes": ["use", "admin"]}))
    for key_id in (caller.key_id, colleague.key_id):
        with pytest.raises(Stopped):
            await keys.rotate(caller, key_id, 0)
    with pytest.raises(Stopped):
        await administration.api.lift(caller, "session", session, None)

    await keys.revoke(caller, caller.key_id)
    assert await administration.api.lift(colleague, "session", session, None)


async def test_a_stopped_tenant_and_a_stopped_key_cannot_lift_their_own_stop(administration: Administration) -> None:
    api, caller = administration.api, await administration.admin(administration.tenant)
    colleague = await administration.admin(administration.tenant)
    operator = await administration.admin(administration.operators)
    await administration.stop(operator, kind="tenant", tenant=caller.tenant)
    await administration.stop(colleague, kind="key", id=caller.key_id)

    with pytest.raises(Forbidden, match="operator's tenant"):
        await api.lift(caller, "tenant", caller.tenant, None)
    with pytest.raises(Forbidden, match="own stop"):
        await api.lift(caller, "key", caller.key_id, None)

    assert {stop.kind for stop in await api.list(caller, None)} == {"tenant", "key"}
    await api.lift(colleague, "key", caller.key_id, None)
    assert [stop.kind for stop in await api.list(caller, None)] == ["tenant"]


@pytest.mark.parametrize(("kind", "prefix"), [("response", "resp"), ("conversation", "conv")])
async def test_an_admin_stops_responses_and_conversations(
    administration: Administration, kind: StopKind, prefix: str
) -> None:
    api, caller, name = administration.api, await administration.admin(administration.tenant), new_name(prefix)

    await administration.stop(caller, kind=kind, id=name)

    [stop] = await api.list(caller, None)
    assert (stop.kind, stop.id) == (kind, name)
    assert await api.lift(caller, kind, name, None) == stop


async def test_other_tenants_can_be_stopped_by_the_operators_admin_only(administration: Administration) -> None:
    api, caller = administration.api, await administration.admin(administration.tenant)
    operator = await administration.admin(administration.operators)

    for call in (
        administration.stop(caller, kind="tenant", tenant=administration.other),
        api.list(caller, administration.other),
    ):
        with pytest.raises(Forbidden):
            await call
    with pytest.raises(NotFound):
        await api.lift(caller, "tenant", administration.other, None)
    await administration.stop(operator, kind="tenant", tenant=administration.other)

    assert [stop.tenant for stop in await api.list(operator, administration.other)] == [administration.other]
    await api.lift(operator, "tenant", administration.other, None)


async def test_a_key_of_another_tenant_is_as_missing_as_an_unknown_one(administration: Administration) -> None:
    caller = await administration.admin(administration.tenant)
    strange = (await administration.admin(administration.other)).key_id

    for key_id in (strange, new_id().replace("-", "")):
        with pytest.raises(NotFound):
            await administration.stop(caller, kind="key", id=key_id)


async def test_a_typo_in_the_id_of_a_session_is_refused(administration: Administration) -> None:
    caller = await administration.admin(administration.tenant)

    with pytest.raises(InvalidRequest, match="not the id of a session"):
        await administration.stop(caller, kind="session", id="talk")


async def test_a_revoked_key_and_a_caller_without_authentication_stop_nothing(administration: Administration) -> None:
    caller = await administration.admin(administration.tenant)
    await administration.keys.revoke(None, caller.key_id)

    with pytest.raises(Unauthenticated):
        await administration.stop(caller, kind="tenant")
    with pytest.raises(Forbidden, match="AUTH=none"):
        await administration.stop(ANONYMOUS, kind="tenant")
