import pytest
from infra.local.engine import Engine
from tests.store.conftest import Cloud

from stint.domain.api_keys import ApiKeyWithSecret, NewApiKey
from stint.domain.errors import Conflict, Forbidden, NotFound, Unauthenticated
from stint.domain.principals import ANONYMOUS, SCOPES, Principal
from stint.services.access.api_keys import ApiKeys
from stint.services.access.key_administration import KeyAdministration
from stint.store.api_keys import ApiKeyStore
from stint.store.table import Table

LIMIT = 100


class Administration:
    """The use cases, two tenants' admins with keys of their own, and a clock that a test moves."""

    def __init__(self, cloud: Cloud, table: str, tenant: str) -> None:
        self.now = 1_000_000_000.0
        self.tenant, self.other, self.operators = tenant, f"{tenant}-2", f"{tenant}-0"
        self.keys = ApiKeys(ApiKeyStore(Table(cloud.client, table)), lambda: self.now)
        self.api = KeyAdministration(self.keys, self.operators, cloud.store.stops, 90, lambda: self.now)

    async def admin(self, tenant: str, **rights: object) -> Principal:
        """Return a caller with a stored key."""
        request = NewApiKey.model_validate({"scopes": ["use", "admin"], **rights}).of_tenant(tenant)
        principal = await self.keys.verify((await self.keys.create(request)).key)
        assert principal
        return principal

    async def create(self, caller: Principal, **fields: object) -> ApiKeyWithSecret:
        return await self.api.create(caller, NewApiKey.model_validate(fields))


@pytest.fixture
def administration(cloud: Cloud, tenant: str, engine: Engine) -> Administration:
    return Administration(cloud, engine.outputs["KeysTableName"], tenant)


async def test_a_tenants_admin_manages_the_keys_of_its_tenant(administration: Administration) -> None:
    api, caller = administration.api, await administration.admin(administration.tenant)

    created = await administration.create(caller, name="app")
    rotated = await api.rotate(caller, created.id, 0)
    revoked = await api.revoke(caller, created.id)

    assert (created.tenant, rotated.id, revoked.id) == (administration.tenant, created.id, created.id)
    assert (await api.get(caller, created.id)).revoked_at
    listed = await api.list(caller, None, None, LIMIT)
    assert [key.id for key in listed.data] == [created.id, caller.key_id]


async def test_keys_of_other_tenants_are_missing_for_a_tenants_admin(administration: Administration) -> None:
    api, caller = administration.api, await administration.admin(administration.tenant)
    strange = (await administration.admin(administration.other)).key_id

    for call in (api.get(caller, strange), api.revoke(caller, strange), api.rotate(caller, strange, 0)):
        with pytest.raises(NotFound):
            await call
    with pytest.raises(Forbidden):
        await api.list(caller, administration.other, None, LIMIT)
    with pytest.raises(Forbidden):
        await administration.create(caller, tenant=administration.other)


async def test_an_admin_of_the_operators_tenant_manages_all_keys(administration: Administration) -> None:
    api, operator = administration.api, await administration.admin(administration.operators)

    created = await administration.create(operator, tenant=administration.other, scopes=list(SCOPES))
    rotated = await api.rotate(operator, created.id, 0)
    listed = await api.list(operator, administration.other, None, LIMIT)
    await api.revoke(operator, created.id)

    assert created.tenant == administration.other
    assert [key.id for key in listed.data] == [created.id]
    assert await administration.keys.verify(rotated.key) is None


async def test_a_tenants_admin_passes_on_no_more_than_it_has(administration: Administration) -> None:
    caller = await administration.admin(administration.tenant, expires_at=1_000_000_100)

    with pytest.raises(Forbidden, match="the scope registry:write"):
        await administration.create(caller, scopes=["registry:write"], expires_at=1_000_000_100)
    with pytest.raises(Forbidden, match="end no later, here at 1000000100"):
        await administration.create(caller)


@pytest.mark.parametrize("operator", [False, True])
async def test_keys_that_an_admin_without_a_key_creates_expire(administration: Administration, operator: bool) -> None:
    tenant = administration.operators if operator else administration.tenant
    caller = Principal(tenant, "ann", frozenset({"use", "admin"}))
    latest = 1_000_000_000 + 90 * 86_400

    assert (await administration.create(caller)).expires_at == latest
    assert (await administration.create(caller, expires_at=1_000_000_100)).expires_at == 1_000_000_100
    with pytest.raises(Forbidden, match=f"end at {latest} at the latest"):
        await administration.create(caller, expires_at=latest + 1)


@pytest.mark.parametrize("operator", [False, True])
async def test_an_admin_without_a_key_rotates_no_key_that_ends_later(
    administration: Administration, operator: bool
) -> None:
    tenant = administration.operators if operator else administration.tenant
    caller = Principal(tenant, "ann", frozenset({"use", "admin"}))
    endless, created = await administration.admin(tenant), await administration.create(caller)

    assert (await administration.api.rotate(caller, created.id, 0)).expires_at == created.expires_at
    with pytest.raises(Forbidden, match="at the latest"):
        await administration.api.rotate(caller, endless.key_id, 0)


@pytest.mark.parametrize("operator", [False, True])
async def test_a_key_with_an_end_makes_none_that_ends_later(administration: Administration, operator: bool) -> None:
    tenant = administration.operators if operator else administration.tenant
    token = Principal(tenant, "ann", frozenset({"use", "admin"}))
    created = await administration.create(token, scopes=["use", "admin"])
    caller = await administration.keys.verify(created.key)
    assert caller
    assert created.expires_at
    endless = await administration.admin(tenant)

    for late in ({}, {"expires_at": created.expires_at + 1}):
        with pytest.raises(Forbidden, match=f"end no later, here at {created.expires_at}"):
            await administration.create(caller, scopes=["use", "admin"], **late)
    with pytest.raises(Forbidden, match="end no later"):
        await administration.api.rotate(caller, endless.key_id, 0)

    second = await administration.create(caller, expires_at=created.expires_at)
    assert (await administration.api.rotate(caller, second.id, 0)).expires_at == created.expires_at
    assert (await administration.api.rotate(caller, caller.key_id, 0)).expires_at == created.expires_at


async def test_rotation_hands_out_no_key_with_more_rights_than_the_caller(administration: Administration) -> None:
    caller = await administration.admin(administration.tenant)
    mighty = await administration.admin(administration.tenant, scopes=list(SCOPES))

    with pytest.raises(Forbidden, match="the scope knowledge:write"):
        await administration.api.rotate(caller, mighty.key_id, 0)


async def test_an_admin_rotates_its_own_key(administration: Administration) -> None:
    caller = await administration.admin(administration.tenant, expires_at=1_000_000_100, models=["a[b]"])

    assert (await administration.api.rotate(caller, caller.key_id, 0)).id == caller.key_id


async def test_a_revoked_admin_is_refused_although_the_authorizers_answer_is_cached(
    administration: Administration,
) -> None:
    api, caller = administration.api, await administration.admin(administration.operators)
    await api.revoke(caller, caller.key_id)

    calls = (administration.create(caller), api.list(caller, None, None, LIMIT), api.rotate(caller, caller.key_id, 0))
    for call in calls:
        with pytest.raises(Unauthenticated, match="revoked or expired"):
            await call


async def test_an_expired_admin_is_refused(administration: Administration) -> None:
    caller = await administration.admin(administration.operators, expires_at=1_000_000_100)
    administration.now += 100

    with pytest.raises(Unauthenticated):
        await administration.create(caller)


async def test_a_caller_with_a_token_needs_no_key(administration: Administration) -> None:
    caller = Principal(administration.tenant, "ann", frozenset({"admin"}))

    assert (await administration.create(caller, scopes=["admin"])).tenant == administration.tenant


async def test_a_stack_without_authentication_issues_no_keys(administration: Administration) -> None:
    calls = (administration.create(ANONYMOUS), administration.api.list(ANONYMOUS, None, None, LIMIT))

    for call in calls:
        with pytest.raises(Forbidden, match="AUTH=none"):
            await call


async def test_a_list_has_pages(administration: Administration) -> None:
    api, caller = administration.api, await administration.admin(administration.tenant)
    ids = [(await administration.create(caller)).id for _ in range(4)][::-1]

    first = await api.list(caller, None, None, 2)
    second = await api.list(caller, None, first.data[-1].id, 3)

    assert ([key.id for key in first.data], first.has_more) == (ids[:2], True)
    assert ([key.id for key in second.data], second.has_more) == ([*ids[2:], caller.key_id], False)


async def test_a_revoked_key_cannot_be_rotated(administration: Administration) -> None:
    caller = await administration.admin(administration.tenant)
    created = await administration.create(caller)
    await administration.api.revoke(caller, created.id)

    with pytest.raises(Conflict, match="revoked or expired"):
        await administration.api.rotate(caller, created.id, 0)
