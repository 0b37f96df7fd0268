"""Statements of docs/security.md about callers are true and complete."""

import re
from pathlib import Path

from stint.http.scopes import ROUTE_SCOPES
from stint.services.access.iam_roles import read_iam_roles

DOCS = (Path(__file__).parents[2] / "docs" / "security.md").read_text()


def test_the_table_has_each_route_that_needs_another_scope_than_use() -> None:
    rows = re.findall(r"^\| `(/.*?)` \| (.*?) \| (.*?) \|$", DOCS, re.MULTILINE)
    stated = {(f"{method} {path}", scope) for path, methods, scope in rows for method in methods.split(", ")}

    others = {route: scope for route, scope in ROUTE_SCOPES.items() if scope != "use"}
    assert stated == {(route, f"`{scope}`" if scope else "none: open") for route, scope in others.items()}


def test_the_example_of_roles_can_be_used() -> None:
    [example] = re.findall(r"### Roles of IAM.*?```json\n(.*?)```", DOCS, re.DOTALL)

    roles = read_iam_roles(example)

    assert set(roles) == {("", "shop-backend"), ("111122223333", "deployer")}
