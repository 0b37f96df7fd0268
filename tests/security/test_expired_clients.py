"""The unmodified clients with a key that has expired."""

import httpx
import llama_stack_client
import openai
import pytest
from llama_stack_client import LlamaStackClient
from openai import OpenAI
from tests.security.callers import expired
from tests.security.stack import Stack


@pytest.fixture
def key(stack: Stack) -> str:
    """Return an expired key."""
    return expired(stack)["authorization"].removeprefix("Bearer ")


def test_openais_client_raises_an_authentication_error_that_says_why(stack: Stack, key: str) -> None:
    http = openai.DefaultHttpxClient(trust_env=False)
    client = OpenAI(base_url=f"{stack.served.url}/v1", api_key=key, http_client=http)
    with client, pytest.raises(openai.AuthenticationError, match="expired or revoked") as refused:
        client.responses.create(model="scripted/demo", input="Hi")

    assert (refused.value.status_code, refused.value.code) == (401, "unauthorized")


def test_llama_stacks_client_raises_an_authentication_error_that_says_why(stack: Stack, key: str) -> None:
    http = httpx.Client(trust_env=False)
    client = LlamaStackClient(base_url=stack.served.url, api_key=key, http_client=http)
    with client, pytest.raises(llama_stack_client.AuthenticationError, match="expired or revoked") as refused:
        client.models.list()

    assert refused.value.status_code == 401
