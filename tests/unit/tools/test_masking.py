import json
import time
from typing import Any

import pytest

from stint.domain.errors import InvalidRequest
from stint.domain.redaction import MASK
from stint.tools.masking import mask, mask_path, mask_url, refuse_masked, secrets_in

SECRET = "s3cret-value"


@pytest.mark.parametrize(
    "name",
    [
        "api_key",
        "apiKey",
        "APIKEY",
        "X-Api-Key",
        "x-subscription-token",
        "accesstoken",
        "refresh_tokens",
        "Authorization",
        "password",
        "db-passwd",
        "clientSecret",
        "secrets",
        "credentials",
        "appid",
        "app_id",
        "key",
        "cookie",
        "auth",
        "authkey",
        "accesskey",
        "privatekey",
        "subscriptionkey",
        "mykey",
        "creds",
        "passcode",
        "pat",
        "sid",
        "session",
        "userpass",
        "pw",
        "psk",
        "sas",
        "otp",
        "hmac",
        "authheader",
        "webhook",
        "webhook_url",
        "database_url",
        "conn_string",
    ],
)
@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [value], lambda value: {"inner": value}])
def test_what_is_named_like_a_credential_is_not_shown(name: str, wrap: Any) -> None:
    for args in ({name: wrap(SECRET)}, {"tools": [{"body": {"deep": [{name: wrap(SECRET)}]}}]}):
        shown = json.dumps(mask(args))

        assert SECRET not in shown
        assert MASK in shown
        assert name in shown


def test_a_password_may_be_a_number() -> None:
    assert mask({"password": 1234}) == {"password": MASK}


@pytest.mark.parametrize(
    "args",
    [
        {"max_results": 3, "max_tokens": 100, "token_count": 2, "author": "Ann", "monkey": "x", "keyword": "tea"},
        {"bypass": "the-cache", "keyboard": "us-layout", "compass": "northwest", "session_id": "a-session"},
        {"tools": [{"name": "t", "url": "https://x.example/{id}?v=1&page=2", "timeout": 3, "body": None}]},
        {"parameters": {"type": "object", "properties": {"token": {"type": "string"}}, "required": ["token"]}},
        {"text": "see https://x.example/a", "password": None, "auth": False},
    ],
)
def test_what_is_no_credential_is_shown_as_it_is(args: dict[str, Any]) -> None:
    assert mask(args) == args


@pytest.mark.parametrize("headers", [{"X-Anything": SECRET}, [f"X-Anything: {SECRET}"], SECRET])
def test_headers_are_shown_by_name_only(headers: Any) -> None:
    shown = mask({"tools": [{"Headers": headers, "name": "t"}], "headers": headers})

    assert SECRET not in json.dumps(shown)
    assert shown["tools"][0]["name"] == "t"
    if isinstance(headers, dict):
        assert shown["headers"] == {"X-Anything": MASK}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"https://ann:{SECRET}@x.example:8080/a", f"https://{MASK}@x.example:8080/a"),
        (f"https://{SECRET}@x.example/", f"https://{MASK}@x.example/"),
        (f"https://x.example/a?v=1&api_key={SECRET}#part", f"https://x.example/a?v=1&api_key={MASK}#part"),
        (f"wss://x.example/{{id}}?token={SECRET}&q={{q}}", f"wss://x.example/{{id}}?token={MASK}&q={{q}}"),
        (f"http://[broken?token={SECRET}", MASK),
        (f"go to http://x.example/?sig={SECRET} now", f"go to http://x.example/?sig={MASK} now"),
    ],
)
def test_urls_are_shown_without_their_credentials(url: str, shown: str) -> None:
    assert mask({"tools": [{"url": url}]}) == {"tools": [{"url": shown}]}


MANY = {
    "fields of one query": "https://x.example/?" + "k=v&" * 1_000,
    "URLs": "https://x.example/?k=v " * 1_000,
    "pairs": "key=v; " * 2_000,
    "characters": "a " * 200_000,
}


@pytest.mark.parametrize("what", MANY)
def test_a_text_with_too_many_places_for_a_credential_is_not_read_but_masked_as_a_whole(what: str) -> None:
    shown = mask({"body": MANY[what], "after": "https://x.example/?k=v"})

    assert shown["body"] in (MASK, f"https://x.example/?{MASK}")
    assert shown["after"] in (MASK, "https://x.example/?k=v")


def test_the_credentials_in_a_text_of_many_places_are_found_all_the_same() -> None:
    for text in MANY.values():
        assert SECRET in secrets_in({"body": f"{text} https://x.example/?api_key={SECRET}"})


def test_the_credentials_of_a_url_with_a_very_long_scheme_are_not_shown() -> None:
    assert mask({"x": f"{'a' * 80_000}://ann:{SECRET}@x.example/"}) == {"x": f"{'a' * 80_000}://{MASK}@x.example/"}


@pytest.mark.parametrize("repeated", ["a", "a:", "a:/", "a+", "a://", "a://[", "a://?a=1&", "A", "aA1-"])
def test_the_time_for_a_long_text_does_not_grow_with_the_square_of_its_length(repeated: str) -> None:
    begin = time.process_time()

    mask({"x": repeated * (1_000_000 // len(repeated))})

    assert time.process_time() - begin < 5


@pytest.mark.parametrize(
    ("url", "shown", "endpoint", "path"),
    [
        ("https://x.example/api/v1/mcp", None, None, None),
        ("https://x.example/sse?v=1#top", None, None, None),
        (
            "https://x.example/s/AbCd1234/mcp",
            None,
            f"https://x.example/s/{MASK}/mcp",
            f"https://x.example/s/{MASK}/mcp",
        ),
        ("https://x.example/projects/project-42", None, f"https://x.example/projects/{MASK}", None),
        ("https://x.example/some-secret-path", f"https://x.example/{MASK}", f"https://x.example/{MASK}", None),
        ("https://x.example/key/abcdefgh", f"https://x.example/key/{MASK}", f"https://x.example/key/{MASK}", None),
        ("https://x.example/token/{id}/x", None, None, None),
        ("https://x.example/?code=abc&page=2", f"https://x.example/?code={MASK}&page=2", None, None),
        (
            "https://x.example/?project_id=5f1d7f3a9b2c4d6e8f0a1b2c",
            None,
            f"https://x.example/?project_id={MASK}",
            f"https://x.example/?project_id={MASK}",
        ),
        ("https://x.example/?set=of-letters", None, f"https://x.example/?set={MASK}", None),
        ("https://x.example/?a={a_long_one}&b=page-2", None, None, None),
        ("https://x.example/?" + "a=1&" * 100, f"https://x.example/?{MASK}", None, None),
        ("https://x.example/?k=sk-abcdefghijklmnop", f"https://x.example/?k={MASK}", None, None),
        ("https://x.example/?key={key}&flag", None, None, None),
        ("https://x.example/a#token=abc&top", f"https://x.example/a#token={MASK}&top", None, None),
    ],
)
def test_what_may_be_a_key_in_a_path_or_a_query_is_masked(
    url: str, shown: str | None, endpoint: str | None, path: str | None
) -> None:
    assert mask_url(url) == (shown or url)
    assert mask_url(url, endpoint=True) == (endpoint or shown or url)
    if path is not None:
        assert mask_path(url) == path


def test_a_responses_server_is_shown_without_any_segment_that_is_long_enough_for_a_key() -> None:
    assert mask_path("https://x.example:8080/path/pathkeyofletters/mcp?token=x") == (
        f"https://x.example:8080/path/{MASK}/mcp?token={MASK}"
    )
    assert mask_path("https://x.example") == "https://x.example"
    assert mask_path(mask_path("https://ann:pw@x.example/abcdefgh")) == f"https://{MASK}@x.example/{MASK}"


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (f"q={{q}}&api_key={SECRET}", f"q={{q}}&api_key={MASK}"),
        (f'{{"token": "{SECRET}", "q": {{q}}}}', f'{{"token": "{MASK}", "q": {{q}}}}'),
        (f'{{"auth": {{"user": "{SECRET}"}}, "n": 1}}', f'{{"auth": "{MASK}", "n": 1}}'),
        ("password={password}", "password={password}"),
        ("The page token: the token of the page", f"The page token: {MASK} token of the page"),
        ("", ""),
    ],
)
def test_a_body_of_text_is_shown_without_its_credentials(body: str, shown: str) -> None:
    assert mask({"tools": [{"body": body}]}) == {"tools": [{"body": shown}]}


@pytest.mark.parametrize(
    "args",
    [
        {"description": "Send token: the token of the page, or api_key=none."},
        {"name": "searchDocumentsOfProject2", "function": "getOrdersOfCustomer2026"},
        {"project_id": "5f1d7f3a9b2c4d6e8f0a1b2c", "password": "{password}"},
        {"headers": {"Accept": "application/json", "X-Call": "{id}"}},
    ],
)
def test_what_only_looks_like_a_credential_is_shown(args: dict[str, Any]) -> None:
    assert mask({"tools": [args]}) == {"tools": [args]}


def test_what_looks_like_a_key_is_masked_whatever_its_name() -> None:
    args = {"x": "ghp_abcdefghijklmnop", "y": ["Xa1Xa1Xa1Xa1Xa1Xa1Xa1Xa"], "z": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.c2ln"}

    assert mask(args) == {"x": MASK, "y": [MASK], "z": MASK}


def test_what_is_masked_is_what_is_looked_for() -> None:
    args = {"api_key": SECRET, "tools": [{"url": f"https://ann:{SECRET}@x.example/?sig={SECRET}-2", "body": "key=k3y"}]}

    assert secrets_in(args) == {SECRET, f"ann:{SECRET}", f"{SECRET}-2", "k3y"}


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [{"headers": {"X": MASK}}]}, "args.a[0].headers.X"),
        ({"url": f"https://x.example/?key={MASK}"}, "args.url"),
        ([MASK], "args[0]"),
        (["https://x.example/%2A%2A%2A%2A%2A%2A%2A%2A/mcp"], "args[0]"),
        (MASK, "args"),
    ],
)
def test_a_mask_that_comes_back_is_refused_by_its_place(value: Any, place: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        refuse_masked(value, "args")

    assert (caught.value.param, caught.value.code) == (place, "masked_value")


def test_what_has_no_mask_passes() -> None:
    refuse_masked({"a": ["*******", None, 5, {"b": "x"}]}, "args")
    refuse_masked(None, "args")


@pytest.mark.parametrize("repeated", ["a", "a=", "key=", "key: ", '"key":"', "-", "a-", "?a=1&", "/a1", "%", "{a}"])
def test_the_steps_for_a_long_body_do_not_grow_with_the_square_of_its_length(repeated: str) -> None:
    begin = time.process_time()

    for where in ("body", "url", "x"):
        text = repeated * (300_000 // len(repeated))
        mask({where: text if where != "url" else f"https://x.example/{text}"})

    assert time.process_time() - begin < 10
