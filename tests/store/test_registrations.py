import secrets
from typing import Any

import pytest
from tests.store.conftest import Cloud

from stint.domain.content import URL
from stint.domain.errors import Conflict, Forbidden, NotFound
from stint.domain.llama_stack.registrations import Owner, RegistrationMarks, ShieldEntry, ToolGroup
from stint.store.registrations import Registrations
from stint.store.store import Store


def toolgroup(identifier: str) -> ToolGroup:
    return ToolGroup(
        identifier=identifier,
        provider_resource_id=identifier,
        provider_id="model-context-protocol",
        mcp_endpoint=URL(uri="https://mcp.example.org"),
    )


def allow(_: RegistrationMarks) -> None:
    """Let anybody delete a registration."""


async def test_what_is_registered_reads_back(store: Store, tenant: str) -> None:
    await store.registrations.create(tenant, "tool_group", "mcp::one/two#three", toolgroup("mcp::one/two#three"))
    shield = ShieldEntry(identifier="s", provider_resource_id="s", provider_id="deny-list", params={"words": ["x"]})
    await store.registrations.create(tenant, "shield", "s", shield)

    found = await store.registrations.read(tenant)

    assert ToolGroup.model_validate_json(found["tool_group", "mcp::one/two#three"]) == toolgroup("mcp::one/two#three")
    assert ShieldEntry.model_validate_json(found["shield", "s"]) == shield
    assert len(found) == 2


async def test_a_taken_identifier_is_a_conflict_and_changes_nothing(store: Store, tenant: str) -> None:
    await store.registrations.create(tenant, "tool_group", "g", toolgroup("g"))

    with pytest.raises(Conflict, match="Toolgroup 'g' is already registered") as refused:
        await store.registrations.create(tenant, "tool_group", "g", toolgroup("other"))

    assert refused.value.code == "toolgroup_exists"
    assert ToolGroup.model_validate_json((await store.registrations.read(tenant))["tool_group", "g"]) == toolgroup("g")


async def test_what_is_deleted_is_gone_and_deleting_it_again_is_not_found(store: Store, tenant: str) -> None:
    await store.registrations.create(tenant, "model", "m", toolgroup("m"))

    await store.registrations.delete(tenant, "model", "m", allow)

    assert await store.registrations.read(tenant) == {}
    with pytest.raises(NotFound, match="Model 'm' not found"):
        await store.registrations.delete(tenant, "model", "m", allow)


async def test_the_same_registration_may_come_twice(store: Store, tenant: str) -> None:
    for _ in range(2):
        await store.registrations.create(tenant, "tool_group", "g", toolgroup("g"))

    assert len(await store.registrations.read(tenant)) == 1


def large(identifier: str) -> ToolGroup:
    """A registration that does not fit into an item, however well it is compressed."""
    return toolgroup(identifier).model_copy(update={"args": {"text": secrets.token_hex(400_000)}})


async def test_the_blob_of_a_large_registration_goes_with_it(cloud: Cloud, tenant: str) -> None:
    store, document = cloud.store, large("g")
    await store.registrations.create(tenant, "tool_group", "g", document)
    assert ToolGroup.model_validate_json((await store.registrations.read(tenant))["tool_group", "g"]) == document
    assert len(cloud.blobs(tenant)) == 1

    await store.registrations.delete(tenant, "tool_group", "g", allow)

    assert cloud.blobs(tenant) == []


async def test_a_registration_whose_blob_is_gone_hides_no_other(cloud: Cloud, tenant: str) -> None:
    store = cloud.store
    for document in (toolgroup("a"), large("b"), toolgroup("c"), large("d")):
        await store.registrations.create(tenant, "tool_group", document.identifier, document)
    for key in cloud.blobs(tenant):
        cloud.s3.delete_object(Bucket=cloud.bucket, Key=key)

    assert [identifier for _, identifier in await store.registrations.read(tenant)] == ["a", "c"]


async def test_what_is_stored_and_valid_no_more_is_a_conflict_and_can_be_deleted(store: Store, tenant: str) -> None:
    await store.registrations.create(tenant, "tool_group", "g", URL(uri="no toolgroup"))

    with pytest.raises(Conflict):
        await store.registrations.create(tenant, "tool_group", "g", toolgroup("g"))
    await store.registrations.delete(tenant, "tool_group", "g", allow)

    assert await store.registrations.read(tenant) == {}


def of_admin(identifier: str) -> ToolGroup:
    return toolgroup(identifier).model_copy(update={"owner": Owner(attributes={"roles": ["admin"]})})


def refuse_those_of_admins(marks: RegistrationMarks) -> None:
    if marks.belongs_to_admin():
        raise Forbidden("an admin's")


async def owner_of(store: Store, tenant: str) -> Owner | None:
    return ToolGroup.model_validate_json((await store.registrations.read(tenant))["tool_group", "g"]).owner


@pytest.mark.parametrize("admin_first", [False, True])
async def test_a_registration_that_an_admin_repeats_or_made_first_stays_the_admins(
    store: Store, tenant: str, *, admin_first: bool
) -> None:
    both = [toolgroup("g").model_copy(update={"owner": Owner()}), of_admin("g")]
    for document in reversed(both) if admin_first else both:
        await store.registrations.create(tenant, "tool_group", "g", document)

    assert await owner_of(store, tenant) == of_admin("g").owner
    with pytest.raises(Forbidden):
        await store.registrations.delete(tenant, "tool_group", "g", refuse_those_of_admins)
    assert await owner_of(store, tenant) == of_admin("g").owner


async def test_a_deletion_leaves_what_an_admin_has_registered_meanwhile(cloud: Cloud, tenant: str) -> None:
    """Between its check and its write."""
    store = cloud.store
    await store.registrations.create(tenant, "tool_group", "g", toolgroup("g"))
    stolen: list[RegistrationMarks] = []

    class Slow(Registrations):
        async def _read_one(self, item: dict[str, Any]) -> bytes | None:
            raw = await super()._read_one(item)
            await store.registrations.create(tenant, "tool_group", "g", of_admin("g"))
            return raw

    slow = Slow(store.registrations._table, store.registrations._documents)
    await slow.delete(tenant, "tool_group", "g", stolen.append)

    assert [each.belongs_to_admin() for each in stolen] == [False]
    assert await owner_of(store, tenant) == of_admin("g").owner


async def test_a_registration_that_cannot_be_read_is_deleted_by_an_admin_only(cloud: Cloud, tenant: str) -> None:
    await cloud.store.registrations.create(tenant, "tool_group", "g", large("g"))
    for key in cloud.blobs(tenant):
        cloud.s3.delete_object(Bucket=cloud.bucket, Key=key)

    with pytest.raises(Forbidden):
        await cloud.store.registrations.delete(tenant, "tool_group", "g", refuse_those_of_admins)
    await cloud.store.registrations.delete(tenant, "tool_group", "g", allow)
