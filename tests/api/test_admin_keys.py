"""The routes of API keys behind an authorizer: status, shape, and what they keep secret."""

import asyncio
from typing import Any

import httpx
import pytest
from infra.local.engine import Engine
from starlette.types import ASGIApp, Receive, Scope, Send
from tests.api.app_fixture import LEASE
from tests.clock import CLOCK

from stint.bootstrap.operator import OperatorComposition
from stint.domain.errors import StoreUnavailable
from stint.domain.ids import new_id
from stint.domain.principals import Principal, scopes_of
from stint.http.app import create_app
from stint.http.routes import admin
from stint.settings import read_settings
from stint.store.idempotent_requests import RequestRecords

KEYS = "/v1/admin/keys"


class AdminApi:
    """The app of the function `admin` for callers whom an authorizer has let in."""

    def __init__(self, engine: Engine) -> None:
        tables = {"STINT_KEYS_TABLE": engine.outputs["KeysTableName"], "STINT_TABLE": engine.outputs["TableName"]}
        settings = read_settings(tables | {"STINT_OPERATOR_TENANT": "ops"})
        composition = OperatorComposition(lambda: settings)
        self.app = create_app(
            "admin",
            admin.router,
            make_services=composition.make_services,
            read_settings=lambda: settings,
            buffered=False,
        )
        self.tenant = f"t{new_id()[-12:]}"

    def send(
        self, method: str, path: str, body: object = None, *, tenant: str = "", scopes: str = "use admin", key: str = ""
    ) -> httpx.Response:
        caller = Principal(tenant or self.tenant, "ann", scopes_of(scopes.split()))

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(with_caller(self.app, caller))
            async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
                return await client.request(method, path, json=body, headers={"idempotency-key": key} if key else {})

        return asyncio.run(send())

    def create(self, **fields: object) -> dict[str, Any]:
        created = self.send("POST", KEYS, fields)
        assert created.status_code == 200, created.text
        document: dict[str, Any] = created.json()
        return document


def with_caller(app: ASGIApp, caller: Principal) -> ASGIApp:
    """Return the app for requests whose event has the principal as the authorizer's context."""

    async def called(scope: Scope, receive: Receive, send: Send) -> None:
        scope["aws.event"] = {"requestContext": {"authorizer": caller.to_context()}}
        await app(scope, receive, send)

    return called


@pytest.fixture
def api(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> AdminApi:
    for name, value in engine.environment().items():
        monkeypatch.setenv(name, value)
    return AdminApi(engine)


def test_an_idempotency_key_creates_one_api_key_and_stores_no_secret(api: AdminApi) -> None:
    first, again = [api.send("POST", KEYS, {"name": "ci"}, key="k") for _ in range(2)]
    another = api.send("POST", KEYS, {"name": "ci"}, key="k", tenant=f"{api.tenant}-b")

    assert first.status_code == 200, first.text
    assert (again.status_code, again.json()["error"]["code"]) == (409, "secret_returned")
    assert again.headers["x-should-retry"] == "false"
    assert len(api.send("GET", KEYS).json()["data"]) == 1
    assert another.json()["id"] != first.json()["id"]


def test_a_repetition_of_a_request_without_an_answer_gets_another_secret_of_its_key(
    api: AdminApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("The database does not respond. Try again.")

    with monkeypatch.context() as patched:
        patched.setattr(RequestRecords, "put_answer", fail)
        first = api.send("POST", KEYS, {"name": "ci"}, key="k").json()
    CLOCK.move(LEASE + 1)
    again = api.send("POST", KEYS, {"name": "ci"}, key="k").json()

    assert again["id"] == first["id"]
    assert again["key"] != first["key"]
    assert len(api.send("GET", KEYS).json()["data"]) == 1


def test_a_caller_without_the_scope_gets_no_stored_answer(api: AdminApi) -> None:
    api.send("POST", KEYS, {"name": "ci"}, key="k")

    assert api.send("POST", KEYS, {"name": "ci"}, key="k", scopes="use").status_code == 403


def test_a_key_is_returned_once(api: AdminApi) -> None:
    created = api.create(name="app", models=["openai/*"])

    listed = api.send("GET", KEYS).json()
    read = api.send("GET", f"{KEYS}/{created['id']}").json()

    assert created["key"] == f"stk_{created['id']}_{created['key'][-64:]}"
    assert created["object"] == "api_key"
    assert (listed["object"], listed["has_more"], listed["first_id"]) == ("list", False, created["id"])
    assert listed["data"] == [read]
    assert read == {name: value for name, value in created.items() if name != "key"}
    assert created["key"][-64:] not in str(listed)


def test_a_rotated_key_is_another_one_with_the_same_id(api: AdminApi) -> None:
    created = api.create()

    at_once = api.send("POST", f"{KEYS}/{created['id']}/rotate")
    overlapping = api.send("POST", f"{KEYS}/{created['id']}/rotate", {"overlap_seconds": 60})

    assert (at_once.status_code, overlapping.status_code) == (200, 200)
    assert len({created["key"], at_once.json()["key"], overlapping.json()["key"]}) == 3
    assert at_once.json()["previous_expires_at"] is None
    assert overlapping.json()["previous_expires_at"] == overlapping.json()["rotated_at"] + 60


def test_a_revoked_key_is_returned_with_its_time(api: AdminApi) -> None:
    created = api.create()

    revoked = api.send("DELETE", f"{KEYS}/{created['id']}")
    rotated = api.send("POST", f"{KEYS}/{created['id']}/rotate")

    assert revoked.status_code == 200
    assert revoked.json()["revoked_at"]
    assert rotated.status_code == 409


def test_a_list_has_pages(api: AdminApi) -> None:
    ids = [api.create()["id"] for _ in range(3)][::-1]

    first = api.send("GET", f"{KEYS}?limit=2").json()
    second = api.send("GET", f"{KEYS}?limit=2&after={first['last_id']}").json()

    assert ([key["id"] for key in first["data"]], first["has_more"]) == (ids[:2], True)
    assert ([key["id"] for key in second["data"]], second["has_more"]) == (ids[2:], False)


def test_a_key_of_another_tenant_is_missing_as_an_unknown_one_is(api: AdminApi) -> None:
    strange = api.create()["id"]

    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/rotate")):
        answers = [
            api.send(method, f"{KEYS}/{key_id}{path}", tenant="another").text.replace(key_id, "ID")
            for key_id in (strange, "0" * 32)
        ]
        assert answers[0] == answers[1]
        assert "not found" in answers[0]


def test_the_operator_manages_keys_of_all_tenants(api: AdminApi) -> None:
    created = api.send("POST", KEYS, {"tenant": api.tenant, "scopes": ["admin"]}, tenant="ops").json()

    listed = api.send("GET", f"{KEYS}?tenant={api.tenant}", tenant="ops").json()

    assert [key["id"] for key in listed["data"]] == [created["id"]]
    assert api.send("GET", f"{KEYS}?tenant=ops").status_code == 403


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"scopes": ["everything"]}, 400, "scopes"),
        ({"scopes": []}, 400, "scopes"),
        ({"tenant": "A#b"}, 400, "tenant"),
        ({"expires_at": 1}, 400, "expires_at is in the past"),
        ({"budgets": {"requests_per_minute": 0}}, 400, "requests_per_minute"),
        ({"expires_in": 3600}, 400, "expires_in"),
        ({"budgets": {"requests": 5}}, 400, "budgets.requests"),
        ({"scopes": ["users:act"]}, 403, "the scope users:act"),
        ({"tenant": "another"}, 403, "cannot manage the tenant another"),
    ],
)
def test_a_key_that_cannot_be_created_is_refused(
    api: AdminApi, body: dict[str, object], status: int, message: str
) -> None:
    refused = api.send("POST", KEYS, body)

    assert refused.status_code == status
    assert message in refused.json()["error"]["message"]
    assert api.send("GET", KEYS).json()["data"] == []


def test_a_rotation_with_an_unknown_field_changes_nothing(api: AdminApi) -> None:
    created = api.send("POST", KEYS, {}).json()

    refused = api.send("POST", f"{KEYS}/{created['id']}/rotate", {"overlap": 60})

    assert refused.status_code == 400
    assert "overlap" in refused.json()["error"]["message"]
    assert api.send("GET", f"{KEYS}/{created['id']}").json()["rotated_at"] is None
