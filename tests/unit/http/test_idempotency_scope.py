"""The scope of an idempotency key: two requests with one key are the same only if all of it is equal."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from starlette.datastructures import Headers

from stint.caller import set_end_user, set_principal
from stint.domain.principals import ANONYMOUS, Principal
from stint.http.attempts import fingerprint_of, hash_body, retry_count_of
from stint.http.idempotency import digest_of

SCOPE: dict[str, Any] = {"type": "http", "headers": [], "method": "POST", "path": "/v1/agents", "query_string": b""}
OTHER_SCOPES: list[dict[str, Any]] = [
    SCOPE | {"path": "/v1/agents/x/session"},
    SCOPE | {"query_string": b"a=1"},
    SCOPE | {"stint.llama_stack": True},
]


@pytest.fixture(autouse=True)
def nobody() -> Iterator[None]:
    yield
    set_principal(None)
    set_end_user(None)


def digest(
    scope: dict[str, Any] = SCOPE, key: str = "k", caller: Principal = ANONYMOUS, user: str | None = None
) -> str:
    set_principal(caller)
    set_end_user(user)
    return digest_of(scope, key)


def test_keys_of_other_callers_routes_and_end_users_are_others() -> None:
    callers = [replace(ANONYMOUS, subject="ann"), replace(ANONYMOUS, key_id="key_1")]
    others = [digest(scope) for scope in OTHER_SCOPES] + [digest(caller=caller) for caller in callers]

    assert len({digest(), digest(key="l"), digest(user="ann"), *others}) == 3 + len(others)


def test_the_stage_of_a_path_is_no_part_of_the_scope() -> None:
    assert digest(SCOPE | {"path": "/prod/v1/agents", "root_path": "/prod"}) == digest()


def test_attempts_differ_in_client_body_and_anonymous_address() -> None:
    def fingerprint(agent: str = "a", body: bytes = b"{}", address: str = "192.0.2.1", key_id: str = "") -> str:
        set_principal(replace(ANONYMOUS, key_id=key_id))
        event = {"requestContext": {"identity": {"sourceIp": address}}}
        return fingerprint_of(SCOPE | {"headers": [(b"user-agent", agent.encode())], "aws.event": event}, body)

    first = fingerprint()

    assert first == fingerprint()
    assert len({first, fingerprint("b"), fingerprint(body=b"[]"), fingerprint(address="192.0.2.2")}) == 4
    assert fingerprint(key_id="k") == fingerprint(key_id="k", address="192.0.2.2")


@pytest.mark.parametrize(("value", "count"), [("2", 2), ("", 0), ("-1", 0), ("1e9", 0), ("99999", 0), ("\u0663", 0)])
def test_a_retry_count_is_a_small_number(value: str, count: int) -> None:
    headers = [(b"x-stainless-retry-count", value.encode())]

    assert retry_count_of({"type": "http", "headers": headers}) == count


def test_the_boundary_of_a_form_is_no_part_of_the_body() -> None:
    def hashed(boundary: str, text: str) -> str:
        headers = Headers({"content-type": f"multipart/form-data; boundary={boundary}"})
        return hash_body(headers, f"--{boundary}\r\n\r\n{text}\r\n--{boundary}--\r\n".encode())

    assert hashed("aaaa", "text") == hashed("bbbb", "text") != hashed("aaaa", "other")
