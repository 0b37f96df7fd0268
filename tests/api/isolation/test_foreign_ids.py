"""Every operation of the OpenAPI document, with ids of another tenant: the answer is that for unknown ids."""

from collections.abc import Iterator, Mapping

import pytest
from tests.api.isolation.belongings import mask, unknown_like
from tests.api.isolation.bodies import FORMS, JSON
from tests.api.isolation.operations import (
    CHOSEN,
    CURSORS,
    PLAIN_QUERIES,
    QUERIES,
    RequestTemplate,
    list_operations,
)
from tests.api.isolation.tenants import Tenant, list_templates, make_tenant, read_all
from tests.api.isolation.warm_process import WarmProcess


@pytest.fixture(scope="module")
def alice(warm_process: WarmProcess, mcp_server: str) -> Iterator[Tenant]:
    yield from make_tenant(warm_process, "alice", mcp_server)


@pytest.fixture(scope="module")
def bob(warm_process: WarmProcess, mcp_server: str) -> Iterator[Tenant]:
    yield from make_tenant(warm_process, "bob", mcp_server)


@pytest.fixture(scope="module")
def carol(warm_process: WarmProcess, mcp_server: str) -> Iterator[Tenant]:
    yield from make_tenant(warm_process, "carol", mcp_server)


def test_every_body_has_an_entry() -> None:
    operations = {each.name: each for each in list_operations()}

    assert {name for name, each in operations.items() if each.body == "application/json"} == set(JSON)
    assert {name for name, each in operations.items() if each.body not in ("", "application/json")} == set(FORMS)


def test_every_query_parameter_has_an_entry() -> None:
    operations = list_operations()
    cursors = {each.path for each in operations if "after" in each.queries or "before" in each.queries}

    assert {name for each in operations for name in each.queries} <= PLAIN_QUERIES | set(QUERIES) | {"after", "before"}
    assert cursors == set(CURSORS)


def without(text: str, ids: Mapping[str, str]) -> str:
    """Return a text without the ids that were sent."""
    for value in ids.values():
        text = text.replace(value, "")
    return text


def sent_names(tenant: Tenant) -> dict[str, str]:
    """Return the ids that a tenant has chosen, and that contain its marker."""
    return {name: value for name, value in tenant.ids.items() if tenant.marker in value and value != tenant.marker}


def compare(template: RequestTemplate, alice: Tenant, bob: Tenant) -> Iterator[str]:
    """Send Alice's ids as Bob, and unknown ones. Yield each difference between the answers, and what else is wrong."""
    for names in template.owners(bob.ids):
        foreign = bob.ids_for(template, {name: alice.ids[name] for name in names})
        unknown = bob.ids_for(template, {name: unknown_like(alice.ids[name]) for name in names})
        refused, missing = template.send(bob.http, foreign), template.send(bob.http, unknown)
        named = f"{template.label} with {sorted(names)}: {refused.status_code} {refused.text[:500]}"
        if (refused.status_code, mask(refused, foreign)) != (missing.status_code, mask(missing, unknown)):
            yield f"{named} instead of {missing.status_code} {missing.text[:500]}"
        # Bob's own agents, which lists show, have names of Alice's registrations, because his earlier requests did.
        if alice.marker in without(without(refused.text, foreign), sent_names(alice)):
            yield f"{named} contains the other tenant's data"
        # A body that names foreign objects may be refused before its address is looked up.
        expected = (404,) if names <= template.names_in_path else (400, 404)
        if names & (template.names_in_path - CHOSEN) and refused.status_code not in expected:
            yield f"{named} is not 404"


def test_ids_of_another_tenant_are_unknown(alice: Tenant, bob: Tenant) -> None:
    before = read_all(alice)

    assert [wrong for template in list_templates() for wrong in compare(template, alice, bob)] == []
    assert read_all(alice) == before


def test_the_owner_finds_the_same_objects(carol: Tenant) -> None:
    """Otherwise the comparisons above would compare nothing."""
    templates = sorted(
        list_templates(), key=lambda each: (each.operation.method == "DELETE", -each.operation.path.count("/"))
    )
    answers = {
        each.label: each.send(carol.http, carol.ids_for(each, {}))
        for each in templates
        if each.names(carol.ids) and not (each.operation.method == "DELETE" and each.query)  # its object is gone
    }

    assert len(answers) > 100
    assert [
        (label, answer.text) for label, answer in answers.items() if answer.status_code not in (200, 202, 409)
    ] == []
