import asyncio
import json
from typing import Any

import pytest
from infra.local.authorization import PAGES, Authorization
from infra.local.functions import FunctionError
from infra.local.gateway_response import Refused
from infra.local.proxy_event import HttpRequest
from infra.local.routing import Match
from infra.local.security_schemes import Authorizer
from infra.local.system import Invoke, Route

STAGE = "arn:aws:execute-api:us-east-1:000000000000:local/prod"


class Caller:
    """A stage whose routes have one authorizer, which returns `statements`, and a clock that a test moves."""

    def __init__(self, *statements: dict[str, Any], ttl: float = 60) -> None:
        self.statements = list(statements)
        self.now = 0.0
        self.invocations = 0
        self._authorizer = Authorizer("Keys", "authorizer", ("authorization",), ttl)
        self._authorization = Authorization(self._invoke, "us-east-1", "prod", lambda: self.now, open_pages=PAGES)

    def status(self, method: str = "GET", path: str = "/v1/agents", credentials: str = "Bearer a") -> int:
        """Return the status of API Gateway's own response to a request, or 200 if the function would get it."""
        headers = [("Authorization", credentials)] if credentials else []
        request = HttpRequest(method, path, "", "", headers, b"", "127.0.0.1", "localhost", 80)
        route = Route("ANY", "/{proxy+}", Invoke("agents", stream=False, timeout=1), self._authorizer)
        try:
            asyncio.run(self._authorization.authorize(request, Match(route, {})))
        except Refused as refused:
            return refused.refusal.status
        return 200

    async def _invoke(self, function: str, event: bytes) -> bytes | FunctionError:
        self.invocations += 1
        return json.dumps({"principalId": "me", "policyDocument": {"Statement": self.statements}}).encode()


def statement(effect: str, *resources: str, action: str = "execute-api:Invoke") -> dict[str, Any]:
    return {"Effect": effect, "Action": action, "Resource": list(resources)}


def test_a_policy_of_the_whole_stage_allows_every_method() -> None:
    caller = Caller(statement("Allow", f"{STAGE}/*/*"))

    assert caller.status("POST", "/v1/agents/a/session/b/turn") == 200


@pytest.mark.parametrize("path", ["/docs", "/docs/reference.css", "/docs/reference.js", "/v1/openapi.json"])
def test_the_api_reference_needs_no_credential_and_a_wrong_one_is_refused(path: str) -> None:
    caller = Caller()

    assert caller.status("GET", path, credentials="") == 200
    assert caller.invocations == 0
    assert caller.status("GET", path, credentials="Bearer a") == 403


@pytest.mark.parametrize(
    "path", ["/docs/..%2fv1/agents", "/docs/", "/docs/../v1/models", "//docs", "/v1/openapi.json/", "/"]
)
def test_only_whole_paths_of_the_api_reference_are_open(path: str) -> None:
    assert Caller().status("GET", path, credentials="") == 401
    assert Caller().status("POST", "/docs", credentials="") == 401


def test_a_policy_without_a_matching_statement_denies() -> None:
    assert Caller(statement("Allow", f"{STAGE}/GET/v1/models")).status() == 403
    assert Caller().status() == 403


def test_a_policy_of_another_action_or_stage_allows_nothing() -> None:
    assert Caller(statement("Allow", f"{STAGE}/*/*", action="lambda:*")).status() == 403
    assert Caller(statement("Allow", f"{STAGE}2/*/*")).status() == 403


@pytest.mark.parametrize("action", ["execute-api:*", "*", "Execute-API:invoke"])
def test_actions_have_wildcards_and_no_case(action: str) -> None:
    assert Caller(statement("Allow", f"{STAGE}/*/*", action=action)).status() == 200


def test_deny_wins_over_allow() -> None:
    caller = Caller(statement("Allow", "*"), statement("Deny", f"{STAGE}/DELETE/*"))

    assert caller.status("GET") == 200
    assert caller.status("DELETE") == 403


def test_wildcards_match_slashes_and_a_question_mark_one_character() -> None:
    caller = Caller(statement("Allow", f"{STAGE}/GET/v?/*"))

    assert caller.status(path="/v1/a/b/c") == 200
    assert caller.status(path="/v10/a") == 403


def test_other_characters_of_a_pattern_are_literal() -> None:
    caller = Caller(statement("Allow", f"{STAGE}/GET/v1/a.c", f"{STAGE}/GET/v1/[ab]"))

    assert caller.status(path="/v1/abc") == 403
    assert caller.status(path="/v1/a") == 403


def test_a_result_is_used_until_its_ttl_ends() -> None:
    caller = Caller(statement("Allow", "*"))

    assert caller.status() == 200
    caller.statements = [statement("Deny", "*")]
    caller.now = 59.9
    assert caller.status() == 200
    caller.now = 60
    assert caller.status() == 403
    assert caller.invocations == 2


def test_a_denial_is_cached_too() -> None:
    caller = Caller(statement("Deny", "*"))

    assert [caller.status(), caller.status()] == [403, 403]
    assert caller.invocations == 1


def test_results_are_cached_per_identity() -> None:
    caller = Caller(statement("Allow", "*"))

    caller.status(credentials="Bearer a")
    caller.status(credentials="Bearer b")

    assert caller.invocations == 2


def test_without_a_ttl_every_request_is_authorized() -> None:
    caller = Caller(statement("Allow", "*"), ttl=0)

    assert [caller.status(), caller.status()] == [200, 200]
    assert caller.invocations == 2


def test_the_cache_forgets_the_oldest_of_many_identities() -> None:
    caller = Caller(statement("Allow", "*"))
    for number in range(1001):
        caller.status(credentials=str(number))

    caller.status(credentials="1000")
    assert caller.invocations == 1001
    caller.status(credentials="0")
    assert caller.invocations == 1002


@pytest.mark.parametrize("unknown", ["NotAction", "NotResource", "Condition", "Principal"])
def test_a_statement_that_is_not_understood_is_an_error_instead_of_an_approval(unknown: str) -> None:
    assert Caller(statement("Allow", "*") | {unknown: "*"}).status() == 500


def test_a_resource_that_api_gateway_does_not_accept_is_an_error() -> None:
    assert Caller(statement("Allow", "*", f"{STAGE}/GET/{'a' * 512}")).status() == 500
