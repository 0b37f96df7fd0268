"""OpenAI's options of the prompt cache, which are hints."""

from typing import Any

import pytest
from pydantic import ValidationError

from stint.domain.inference import PromptCache
from stint.domain.openai.parts import InputText
from stint.domain.openai.prompt_cache import CacheBreakpoint, CacheOptions, choose_cache, show_retention
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
        ({"prompt_cache_options": {"ttl": 3600, "mode": "explicit"}}, PromptCache("5m", implicit=False)),
        ({"prompt_cache_options": {"ttl": "1h", "mode": ["x"], "comparison_response_id": 5}}, PromptCache("1h")),
        ({"prompt_cache_options": {"ttl": "1" * 65}}, PromptCache("5m")),
        ({"prompt_cache_options": "1h", "prompt_cache_retention": "24h"}, PromptCache("1h")),
        ({"prompt_cache_options": {"ttl": "1h"}, "prompt_cache_retention": 24}, PromptCache("1h")),
        ({"prompt_cache_retention": "24h"}, PromptCache("1h")),
        ({"prompt_cache_retention": "in-memory"}, PromptCache("5m")),
        ({"prompt_cache_retention": "in_memory"}, PromptCache("5m")),
        ({"prompt_cache_retention": "24h", "prompt_cache_options": {"ttl": "5m"}}, PromptCache("5m")),
    ],
)
def test_a_request_chooses_the_lifetime_and_the_place(fields: dict[str, Any], cache: PromptCache) -> None:
    assert chosen(**fields) == cache
    assert chosen(None, store=False, **fields) == cache


def test_the_lifetime_of_the_stack_applies_if_the_request_has_none() -> None:
    assert choose_cache(CacheOptions(mode="explicit"), None, PromptCache("1h")) == PromptCache("1h", implicit=False)


@pytest.mark.parametrize(
    ("mark", "read"),
    [
        ({"mode": "explicit"}, CacheBreakpoint()),
        ({"ttl": 5, "mode": 5}, CacheBreakpoint()),
        ({"ttl": "1h"}, CacheBreakpoint(ttl="1h")),
        ({"mode": "x" * 65}, CacheBreakpoint()),
        (True, None),
        ("explicit", None),
        ([], None),
        (None, None),
    ],
)
def test_an_unusable_breakpoint_is_ignored(mark: object, read: CacheBreakpoint | None) -> None:
    part = {"type": "input_text", "text": "Hi", "prompt_cache_breakpoint": mark}

    assert InputText.model_validate(part).prompt_cache_breakpoint == read


@pytest.mark.parametrize("options", ["explicit", 5, True, []])
def test_unusable_options_are_ignored(options: object) -> None:
    assert chosen(prompt_cache_options=options) == DEFAULT


@pytest.mark.parametrize(
    ("retention", "shown"),
    [("in_memory", "in_memory"), ("in-memory", "in_memory"), ("24h", "24h"), ("1w", None), ("<b>", None), (None, None)],
)
def test_only_a_known_retention_is_shown(retention: str | None, shown: str | None) -> None:
    assert show_retention(retention) == shown


def test_a_request_without_an_answer_is_refused_by_its_field() -> None:
    with pytest.raises(ValidationError, match=r"prompt_cache_options\.prewarm"):
        chosen(prompt_cache_options={"prewarm": True})
