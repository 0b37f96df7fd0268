"""Kinds of callers, and the headers that they send."""

import time
from collections.abc import Callable, Mapping

from tests.security.stack import Stack

Headers = Mapping[str, str]
TENANT = "acme"


def bearer(key: str) -> Headers:
    return {"authorization": f"Bearer {key}"}


def wrong_secret(stack: Stack) -> Headers:
    key = stack.create_key(TENANT).key
    return bearer(key[:-1] + ("0" if key[-1] != "0" else "1"))


def secret_of_another_key(stack: Stack) -> Headers:
    first, second = stack.create_key(TENANT), stack.create_key(TENANT)
    return bearer(f"stk_{first.id}_{second.key[-64:]}")


def revoked(stack: Stack) -> Headers:
    key = stack.create_key(TENANT)
    stack.revoke(key)
    return bearer(key.key)


def expired(stack: Stack) -> Headers:
    now = int(time.time())
    return bearer(stack.create_key(TENANT, lambda: now - 1_000, expires_at=now - 500).key)


STRANGERS: Mapping[str, Callable[[Stack], Headers]] = {
    "nothing": lambda _: {},
    "an empty header": lambda _: {"authorization": ""},
    "garbage": lambda _: bearer("garbage"),
    "another scheme": lambda stack: {"authorization": f"Basic {stack.create_key(TENANT).key}"},
    "no scheme": lambda stack: {"authorization": stack.create_key(TENANT).key},
    "another header": lambda stack: {"x-api-key": stack.create_key(TENANT).key},
    "a text after the key": lambda stack: bearer(f"{stack.create_key(TENANT).key} x"),
    "an unknown key": lambda _: bearer(f"stk_{'0' * 32}_{'0' * 64}"),
    "a key with the path of another record": lambda _: bearer(f"stk_../meta_{'0' * 64}"),
    "a token without a signature": lambda _: bearer("eyJhbGciOiJub25lIn0.eyJ0ZW5hbnQiOiJhY21lIiwic3ViIjoiYSJ9."),
    "a wrong secret": wrong_secret,
    "the secret of another key": secret_of_another_key,
    "a revoked key": revoked,
    "an expired key": expired,
}
"""Callers whom every route but that of the health must refuse with 401."""
