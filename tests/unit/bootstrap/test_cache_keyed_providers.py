"""The providers whose servers get a cache key."""

import json
from typing import Any

import pytest

from stint.bootstrap.chat_models import make_router
from stint.bootstrap.model_servers import read_model_servers
from stint.settings import Settings


async def fetch(url: str) -> Any:
    raise AssertionError(url)


def keyed(base_url: str, *servers: object) -> set[str]:
    settings = Settings(openai_base_url=base_url, providers=json.dumps(servers), scripted_models=True)
    return set(make_router(settings, read_model_servers(settings), fetch).with_cache_keys)


@pytest.mark.parametrize(
    "base_url", ["https://api.openai.com/v1", "https://eu.api.openai.com/v1/", " https://API.openai.com:443/v1"]
)
def test_the_servers_of_openai_get_one(base_url: str) -> None:
    assert keyed(base_url) == {"openai"}
    assert keyed("http://localhost:8000/v1", {"id": "mine", "base_url": base_url.strip()}) == {"mine"}


@pytest.mark.parametrize(
    "base_url", ["http://localhost:8000/v1", "https://api.openai.com.example.org/v1", "http://api.openai.com/v1"]
)
def test_other_servers_get_none(base_url: str) -> None:
    assert keyed(base_url, {"id": "mine", "base_url": base_url}) == set()


def test_the_operator_says_whether_another_server_takes_one() -> None:
    azure = {"id": "azure", "base_url": "https://acme.openai.azure.com/openai/v1", "prompt_cache_key": True}
    proxy = {"id": "proxy", "base_url": "https://api.openai.com/v1", "prompt_cache_key": False}

    assert keyed("http://localhost:8000/v1", azure, proxy) == {"azure"}


def test_other_kinds_of_servers_get_none() -> None:
    claude = {"id": "claude", "kind": "bedrock", "region": "eu-west-1"}

    assert keyed("http://localhost:8000/v1", claude, {"id": "demo", "kind": "scripted"}) == set()
