import pytest
from pydantic import ValidationError

from stint.domain.api_keys import (
    ApiKeyObject,
    CreateApiKeyRequest,
    StoredApiKey,
    format_key,
    hash_of,
    new_secret,
    parse_key,
)
from stint.domain.ids import hex_of, new_id
from stint.domain.principals import NO_BUDGETS

ID, SECRET = "0" * 32, "f" * 64


def test_a_key_has_256_random_bits_and_is_parsed_to_its_parts() -> None:
    key_id, secret = hex_of(new_id()), new_secret()

    assert len(bytes.fromhex(secret)) * 8 == 256
    assert parse_key(format_key(key_id, secret)) == (key_id, secret)
    assert new_secret() != secret


@pytest.mark.parametrize(
    "text",
    [
        "",
        "stk_",
        f"stk_{ID}",
        f"stk_{ID}_{SECRET[1:]}",
        f"stk_{ID}_{SECRET}0",
        f"stk_{ID}_{SECRET}\n",
        f" stk_{ID}_{SECRET}",
        f"stk_{ID}_{SECRET.upper()}",
        f"STK_{ID}_{SECRET}",
        f"stk_{ID[1:]}_{SECRET}",
        f"stk_{ID[1:]}:_{SECRET}",
        f"stk_{chr(0x660) * 32}_{SECRET}",
        "stk_" + "0" * 1_000_000,
    ],
)
def test_other_texts_are_no_keys(text: str) -> None:
    assert parse_key(text) is None


def stored(**fields: int) -> StoredApiKey:
    resource = ApiKeyObject(
        id=ID, tenant="t", name="", subject="s", scopes=["use"], models=[], budgets=NO_BUDGETS, created_at=0, **fields
    )
    return StoredApiKey(resource, hash_of(SECRET), hash_of("e" * 64) if "previous_expires_at" in fields else None)


def test_a_key_accepts_its_secret_until_it_expires() -> None:
    key = stored(expires_at=100)

    assert key.accepts(SECRET, 99.9)
    assert not key.accepts(SECRET, 100)
    assert not key.accepts("e" * 64, 99)
    assert not key.accepts("", 99)


def test_a_revoked_key_accepts_nothing() -> None:
    assert not stored(revoked_at=1).accepts(SECRET, 50)


def test_the_previous_secret_is_accepted_during_the_overlap() -> None:
    key = stored(previous_expires_at=100)

    assert key.accepts("e" * 64, 99)
    assert not key.accepts("e" * 64, 100)
    assert key.accepts(SECRET, 1_000)


@pytest.mark.parametrize(
    "fields",
    [
        {"tenant": "ACME"},
        {"tenant": "a" * 33},
        {"tenant": "a\n"},
        {"tenant": "a#b"},
        {"tenant": ""},
        {"name": "n" * 101},
        {"name": "a\x00b"},
        {"subject": "a\x1bb"},
        {"scopes": []},
        {"scopes": ["root"]},
        {"models": ["a"] * 21},
        {"models": ["a b"]},
        {"models": [""]},
        {"budgets": {"requests_per_minute": 0}},
        {"budgets": {"free": True}},
        {"expires_at": -1},
        {"expires_at": 10**18},
    ],
)
def test_invalid_properties_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        CreateApiKeyRequest.model_validate({"tenant": "t", **fields})


def test_a_new_key_may_use_the_api_and_all_models() -> None:
    request = CreateApiKeyRequest.model_validate({"tenant": "t", "expires_at": None, "scopes": ["use", "use"]})

    assert (request.scopes, request.models, request.budgets, request.expires_at) == (["use"], [], NO_BUDGETS, None)
