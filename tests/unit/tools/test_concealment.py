import json
import time
from typing import Any

import pytest

from stint.tools.concealment import CONCEALED, conceal

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
    ],
)
@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [value], lambda value: {"inner": value}])
def test_what_is_named_like_a_credential_is_not_shown(name: str, wrap: Any) -> None:
    for args in ({name: wrap(SECRET)}, {"tools": [{"body": {"deep": [{name: wrap(SECRET)}]}}]}):
        shown = json.dumps(conceal(args))

        assert SECRET not in shown
        assert CONCEALED in shown
        assert name in shown


def test_a_password_may_be_a_number() -> None:
    assert conceal({"password": 1234}) == {"password": CONCEALED}


@pytest.mark.parametrize(
    "args",
    [
        {"max_results": 3, "max_tokens": 100, "token_count": 2, "author": "Ann", "monkey": "x", "keyword": "tea"},
        {"tools": [{"name": "t", "url": "https://x.example/{id}?v=1&page=2", "timeout": 3, "body": None}]},
        {"parameters": {"type": "object", "properties": {"token": {"type": "string"}}, "required": ["token"]}},
        {"text": "see https://x.example/a", "password": None, "auth": False},
    ],
)
def test_what_is_no_credential_is_shown_as_it_is(args: dict[str, Any]) -> None:
    assert conceal(args) == args


@pytest.mark.parametrize("headers", [{"X-Anything": SECRET}, [f"X-Anything: {SECRET}"], SECRET])
def test_headers_are_shown_by_name_only(headers: Any) -> None:
    shown = conceal({"tools": [{"Headers": headers, "name": "t"}], "headers": headers})

    assert SECRET not in json.dumps(shown)
    assert shown["tools"][0]["name"] == "t"
    if isinstance(headers, dict):
        assert shown["headers"] == {"X-Anything": CONCEALED}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"https://ann:{SECRET}@x.example:8080/a", f"https://{CONCEALED}@x.example:8080/a"),
        (f"https://{SECRET}@x.example/", f"https://{CONCEALED}@x.example/"),
        (f"https://x.example/a?v=1&api_key={SECRET}#part", f"https://x.example/a?v=1&api_key={CONCEALED}#part"),
        (f"wss://x.example/{{id}}?token={SECRET}&q={{q}}", f"wss://x.example/{{id}}?token={CONCEALED}&q={{q}}"),
        (f"http://[broken?token={SECRET}", CONCEALED),
        (f"go to http://x.example/?sig={SECRET} now", f"go to http://x.example/?sig={CONCEALED} now"),
    ],
)
def test_urls_are_shown_without_their_credentials(url: str, shown: str) -> None:
    assert conceal({"tools": [{"url": url}]}) == {"tools": [{"url": shown}]}


def test_the_credentials_of_a_url_with_a_very_long_scheme_are_not_shown() -> None:
    assert conceal({"x": f"{'a' * 80_000}://ann:{SECRET}@x.example/"}) == {
        "x": f"{'a' * 80_000}://{CONCEALED}@x.example/"
    }


@pytest.mark.parametrize("repeated", ["a", "a:", "a:/", "a+", "a://", "a://[", "a://?a=1&", "A", "aA1-"])
def test_the_time_for_a_long_text_does_not_grow_with_the_square_of_its_length(repeated: str) -> None:
    begin = time.process_time()

    conceal({"x": repeated * (1_000_000 // len(repeated))})

    assert time.process_time() - begin < 5
