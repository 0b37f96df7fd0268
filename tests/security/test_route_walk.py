"""Every route of the document and of the template, called by each kind of caller."""

import pytest
from tests.route_rules import ROUTE_SCOPES
from tests.security.attacks import Attacks, Record
from tests.security.callers import STRANGERS, TENANT
from tests.security.routes import closed_targets, documented, october
from tests.security.stack import Stack

from stint.domain.principals import SCOPES, Scope
from stint.http.scopes import RouteScope

OPENED_BY: dict[Scope, set[RouteScope]] = {"registry:write": {"registry:write", "knowledge:write"}}
"""The scopes of the routes that a scope opens, if it opens more than its own."""

TABLE = {route.replace(":path", ""): scope for route, scope in ROUTE_SCOPES.items()}


@pytest.mark.parametrize("kind", STRANGERS)
def test_every_route_is_closed_for(stack: Stack, kind: str, record_property: Record) -> None:
    attacks, headers = Attacks(), dict(STRANGERS[kind](stack))
    with stack.client() as http:
        for target in closed_targets(stack.system):
            with attacks.attack(target.name):
                answer = http.request(target.method, target.path, json={}, headers=headers)
            if answer.status_code != 401 or "www-authenticate" not in answer.headers:
                attacks.got_in.append(f"{target.name}: {answer.status_code} {answer.text[:200]}")

    attacks.record(record_property)


@pytest.mark.parametrize("scope", SCOPES)
def test_one_scope_opens_its_own_routes_only(stack: Stack, scope: Scope, record_property: Record) -> None:
    attacks = Attacks()
    with stack.client(stack.create_key(TENANT, scopes=[scope]).key) as http:
        for target in (*documented(), *october()):
            with attacks.attack(target.name):
                answer = http.request(target.method, target.path, json={})
            is_refused = answer.status_code == 403 and "insufficient_rights" not in answer.text
            is_closed = TABLE[target.name] not in {None, "any"} | OPENED_BY.get(scope, {scope})
            if is_refused != is_closed or answer.status_code in (401, 500, 502, 503, 504):
                attacks.got_in.append(f"{target.name}: {answer.status_code} {answer.text[:200]}")

    attacks.record(record_property)


def test_no_route_of_the_template_is_outside_of_the_table_of_scopes(stack: Stack, record_property: Record) -> None:
    attacks = Attacks()
    with stack.client(stack.create_key(TENANT, scopes=["users:act"]).key) as http:
        for target in closed_targets(stack.system):
            with attacks.attack(target.name):
                answer = http.request(target.method, target.path, json={})
            if answer.status_code not in (403, 404, 405) and TABLE.get(target.name) != "any":
                attacks.got_in.append(f"{target.name}: {answer.status_code}")

    attacks.record(record_property)
