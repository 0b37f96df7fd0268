"""Tenants with objects of every kind."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import httpx
from tests.api.isolation.belongings import create_belongings, mask
from tests.api.isolation.operations import RequestTemplate, list_operations
from tests.api.isolation.waiting import create_waiting
from tests.api.isolation.warm_process import WarmProcess

from stint.domain.ids import new_id

SECRET = "marmalade"


@dataclass(frozen=True)
class Tenant:
    """A tenant, and the ids of its objects."""

    name: str
    http: httpx.Client
    ids: Mapping[str, str]
    marker: str

    def ids_for(self, template: RequestTemplate, others: Mapping[str, str]) -> dict[str, str]:
        """Return the ids of its objects with some others. A new turn is in a session without turns."""
        begins = template.operation.path.endswith("/a2a") and "turn_id" not in template.names(self.ids)
        if not (begins or template.operation.path.endswith("/turn")):
            return {**self.ids, **others}
        session = self.http.post(f"/v1/agents/{self.ids['agent_id']}/session", json={"session_name": "talk"})
        return {**self.ids, "session_id": session.json()["session_id"], **others}


def make_tenant(process: WarmProcess, name: str, mcp_server: str) -> Iterator[Tenant]:
    """Yield a tenant with objects of every kind."""
    marker = f"{SECRET}-{name}"
    tenant = f"{name}-{new_id()[-12:]}"
    with process.client(tenant) as http:
        ids = create_belongings(http, marker, mcp_server) | {"provider_id": "scripted"}
        yield Tenant(tenant, http, ids | create_waiting(process, tenant, http, ids), marker)


def list_templates(*methods: str) -> list[RequestTemplate]:
    chosen = [each for each in list_operations() if not methods or each.method in methods]
    return [request for operation in chosen for request in operation.requests()]


def read_all(tenant: Tenant) -> dict[str, str]:
    """Return the answers to all requests that read what a tenant has."""
    answers = {each.label: each.send(tenant.http, tenant.ids) for each in list_templates("GET")}
    return {label: f"{answer.status_code} {mask(answer, tenant.ids)}" for label, answer in answers.items()}
