"""OpenAI's options of the prompt cache, which are hints."""

from typing import Any

import pytest
from pydantic import ValidationError

from stint.domain.inference import PromptCache
from stint.domain.openai.prompt_cache import CacheOptions, choose_cache
from stint.domain.openai.response_requests import CreateResponse

DEFAULT = PromptCache("5m")
FUNCTION = {"type": "function", "name": "f"}


def chosen(default: PromptCache | None = DEFAULT, **fields: Any) -> PromptCache | None:
    return CreateResponse.model_validate({"model": "m", "input": "Hi"} | fields).to_settings().choose_cache(default)


@pytest.mark.parametrize(
    ("fields", "cached"),
    [
        ({}, True),
        ({"store": False}, False),
        ({"store": False, "tools": [FUNCTION]}, True),
        ({"store": False, "previous_response_id": "resp_1"}, True),
        ({"store": False, "conversation": "conv_1"}, True),
    ],
)
def test_the_input_is_cached_if_other_calls_begin_with_it(fields: dict[str, Any], cached: bool) -> None:
    assert chosen(**fields) == (DEFAULT if cached else None)
    assert chosen(None, **fields) is None


@pytest.mark.parametrize(
    ("fields", "cache"),
    [
        ({"prompt_cache_options": {}}, PromptCache("5m")),
        ({"prompt_cache_options": {"ttl": "30m"}}, PromptCache("1h")),
        ({"prompt_cache_options": {"ttl": "12h"}}, PromptCache("1h")),
        ({"prompt_cache_options": {"ttl": "5m"}}, PromptCache("5m")),
        ({"prompt_cache_options": {"ttl": "for ever"}}, PromptCache("5m")),
        ({"prompt_cache_options": {"mode": "explicit"}}, PromptCache("5m", implicit=False)),
        ({"prompt_cache_options": {"mode": "new", "other": 1}}, PromptCache("5m")),
        ({"prompt_cache_retention": "24h"}, PromptCache("1h")),
        ({"prompt_cache_retention": "in_memory"}, PromptCache("5m")),
        ({"prompt_cache_retention": "24h", "prompt_cache_options": {"ttl": "5m"}}, PromptCache("5m")),
    ],
)
def test_a_request_chooses_the_lifetime_and_the_place(fields: dict[str, Any], cache: PromptCache) -> None:
    assert chosen(**fields) == cache
    assert chosen(None, store=False, **fields) == cache


def test_the_lifetime_of_the_stack_applies_if_the_request_has_none() -> None:
    assert choose_cache(CacheOptions(mode="explicit"), None, PromptCache("1h")) == PromptCache("1h", implicit=False)


def test_a_request_without_an_answer_is_refused_by_its_field() -> None:
    with pytest.raises(ValidationError, match=r"prompt_cache_options\.prewarm"):
        chosen(prompt_cache_options={"prewarm": True})
