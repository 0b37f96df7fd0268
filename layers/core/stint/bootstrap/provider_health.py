"""The checks of model servers' health. This module is imported when a caller asks for them."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from stint.domain.errors import StintError
from stint.domain.llama_stack.registry import ProviderHealth
from stint.providers.api_key import ApiKey
from stint.providers.openai.errors import ProviderFailure
from stint.providers.openai.server import OpenAIServer
from stint.services.registry.provider_health import CheckHealth, ProviderHealthChecks

if TYPE_CHECKING:
    from stint.bootstrap.adapters import Adapters
    from stint.bootstrap.model_servers import ModelServer
    from stint.settings import Settings

SECONDS = 2.0
WITHOUT_LIST = (404, 405)


def make_health_checks(adapters: "Adapters") -> ProviderHealthChecks:
    """Return the checks of the servers whose requests cost nothing."""
    settings = adapters.settings
    bedrock = partial(check_bedrock, settings.bedrock_region)
    checks: dict[str, CheckHealth] = {
        "openai": partial(check_server, make_openai(settings)),
        "bedrock": bedrock,
        "bedrock-guardrails": bedrock,
        **{server.id: make_check(server, settings) for server in adapters.model_servers if server.kind != "scripted"},
    }
    return ProviderHealthChecks(checks, seconds=SECONDS)


def make_openai(settings: "Settings") -> OpenAIServer:
    key = ApiKey(settings.openai_api_key.get_secret_value(), settings.openai_secret_arn)
    return OpenAIServer(settings.openai_base_url, key.read, connect_timeout=SECONDS, stall_timeout=SECONDS)


def make_check(server: "ModelServer", settings: "Settings") -> CheckHealth:
    """Return the check of a named server."""
    if server.is_bedrock:
        return partial(check_bedrock, server.region or settings.bedrock_region)
    key, names = server.read_key(settings), server.setting_names
    connected = OpenAIServer(server.base_url, key, settings=names, connect_timeout=SECONDS, stall_timeout=SECONDS)
    return partial(check_server, connected)


async def check_server(server: OpenAIServer) -> ProviderHealth:
    """Request the list of models. Without a key, OpenAI's own server is not called."""
    try:
        if server.is_of_openai and not await server.read_key():
            return ProviderHealth(status="Error", message=f"No key is set (check {server.settings.key}).")
        status = await request_models(server)
    except StintError as error:
        return ProviderHealth(status="Error", message=error.message)
    if 200 <= status < 300:
        return ProviderHealth(status="OK")
    if status in WITHOUT_LIST:
        missing = f"it has no such list, or {server.settings.base_url} is wrong"
        message = f"The server answered {status} to GET /models: {missing}."
        return ProviderHealth(status="Not Implemented", message=message)
    hint = server.settings.hint(status)
    message = f"The server answered {status} to GET /models{f' ({hint})' if hint else ''}."
    return ProviderHealth(status="Error", message=message)


async def check_bedrock(region: str) -> ProviderHealth:
    """Look for credentials and a region. A call of a model would cost money."""
    from stint.providers.bedrock.credentials import find_credentials  # noqa: PLC0415 - only with Bedrock

    try:
        found = await asyncio.to_thread(find_credentials, region or None)
    except StintError as error:
        return ProviderHealth(status="Error", message=error.message)
    return ProviderHealth(status="OK", message=f"AWS credentials were found for {found}. No model was called.")


async def request_models(server: OpenAIServer) -> int:
    """Return the status of `GET {base_url}/models`. The list, which may be long, is not read.

    Raises:
        ModelError: there is no answer, or the key cannot be sent.
    """
    try:
        async with server.open("GET", server.url("models")) as response:
            return response.status
    except ProviderFailure as failure:
        raise failure.error from failure.__cause__
