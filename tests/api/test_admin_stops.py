"""The routes of stops behind an authorizer: status and shape."""

import pytest
from infra.local.engine import Engine
from tests.api.test_admin_keys import AdminApi

from stint.domain.ids import new_id

STOP = "/v1/admin/stop"


@pytest.fixture
def api(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> AdminApi:
    for name, value in engine.environment().items():
        monkeypatch.setenv(name, value)
    return AdminApi(engine)


def test_a_stop_is_created_listed_and_lifted(api: AdminApi) -> None:
    session = new_id()
    created = api.send("POST", STOP, {"kind": "session", "id": session})
    again = api.send("POST", STOP, {"kind": "session", "id": session})

    assert created.status_code == 200
    stop = created.json()
    assert (stop["object"], stop["kind"], stop["id"], stop["tenant"]) == ("stop", "session", session, api.tenant)
    assert again.json() == stop
    listed = api.send("GET", STOP).json()
    assert (listed["object"], listed["data"], listed["has_more"]) == ("list", [stop], False)
    assert api.send("DELETE", f"{STOP}/session/{session}").json() == stop
    assert api.send("GET", STOP).json()["data"] == []
    again = api.send("DELETE", f"{STOP}/session/{session}")
    assert (again.status_code, again.json()) == (200, stop | {"stopped_at": None})
    assert api.send("GET", STOP).json()["data"] == []


@pytest.mark.parametrize(
    ("place", "status"),
    [("session/talk", 400), ("turn/talk", 400), ("response/conv_" + "0" * 32, 400), ("tenant/another", 404)],
)
def test_a_stop_that_cannot_be_is_not_lifted(api: AdminApi, place: str, status: int) -> None:
    assert api.send("DELETE", f"{STOP}/{place}").status_code == status


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"kind": "session"}, 400, "needs its id"),
        ({"kind": "session", "id": "talk"}, 400, "not the id of a session"),
        ({"kind": "turn", "id": "resp_" + "0" * 32}, 400, "not the id of a turn"),
        ({"kind": "response", "id": "conv_" + "0" * 32}, 400, "not the id of a response"),
        ({"kind": "conversation", "id": "x"}, 400, "not the id of a conversation"),
        ({"kind": "tenant", "id": "x"}, 400, "has no id"),
        ({"kind": "agent", "id": "x"}, 400, "kind"),
        ({"kind": "key", "id": "0" * 32}, 404, "not found"),
        ({"kind": "tenant", "tenant": "another"}, 403, "cannot manage the tenant another"),
    ],
)
def test_a_stop_that_cannot_be_is_refused(api: AdminApi, body: object, status: int, words: str) -> None:
    refused = api.send("POST", STOP, body)

    assert (refused.status_code, words in refused.text) == (status, True)


def test_the_scope_admin_is_needed(api: AdminApi) -> None:
    refused = api.send("POST", STOP, {"kind": "tenant"}, scopes="use registry:write users:act")

    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "insufficient_scope")


def test_the_operator_stops_another_tenant(api: AdminApi) -> None:
    stopped = api.send("POST", STOP, {"kind": "tenant", "tenant": api.tenant}, tenant="ops").json()

    assert (stopped["id"], stopped["tenant"]) == (api.tenant, api.tenant)
    lifted = api.send("DELETE", f"{STOP}/tenant/{api.tenant}", tenant="ops").json()
    assert lifted == stopped
