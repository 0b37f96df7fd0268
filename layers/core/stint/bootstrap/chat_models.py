"""The chat models of one Settings object.

Each provider's adapter, and its client, are loaded and made when a model is first called, so that a cold start waits
for none of them. What all adapters lack is added around them: names of tools that a provider accepts, images at URLs,
and the default parameters of a named server.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from stint.domain.inference import Decoding, PromptCache
from stint.models.default_parameters import DefaultParameters
from stint.models.fetched_images import MOST_BYTES, Fetch, FetchedImages
from stint.models.port import ChatModel
from stint.models.routing import Router
from stint.models.tool_names import SanitizedToolNames
from stint.providers.api_key import ApiKey
from stint.providers.openai.addresses import is_of_openai

if TYPE_CHECKING:
    from stint.bootstrap.model_servers import ModelServer
    from stint.settings import Settings


def make_router(settings: "Settings", servers: "Sequence[ModelServer]", fetch: Fetch) -> Router:
    """Return the router of the chat models. `fetch` fetches images."""
    models: dict[str, Callable[[], ChatModel]] = {
        **({"scripted": partial(make_scripted, settings)} if settings.scripted_models else {}),
        "openai": lambda: SanitizedToolNames(make_openai(settings, fetch)),
        "bedrock": lambda: SanitizedToolNames(make_bedrock(settings, fetch)),
        **{server.id: partial(make_named, server, settings, fetch) for server in servers},
    }
    cache = None if settings.prompt_cache == "off" else PromptCache(settings.prompt_cache)
    keyed = find_cache_keyed(settings, servers)
    router = Router(models, settings.default_model, cache, keyed, lambda model_id: suggest(model_id, settings, router))
    return router


def suggest(model_id: str, settings: "Settings", router: Router) -> str:
    """Return a sentence with a configured id that the caller probably means, and may use, or an empty text."""
    from stint.bootstrap.defaults import configured, model_access  # noqa: PLC0415 - for errors only
    from stint.caller import find_principal  # noqa: PLC0415
    from stint.services.registry.near_models import did_you_mean, names_of  # noqa: PLC0415

    principal = find_principal()
    if principal is None:  # which models may be named is not known
        return ""
    access = model_access(principal.tenant, settings)
    return did_you_mean(model_id, names_of(configured(settings, router), access.allows))


def find_cache_keyed(settings: "Settings", servers: "Sequence[ModelServer]") -> frozenset[str]:
    """Return the providers whose servers take a cache key. Others may refuse a field that they do not know."""
    named = frozenset(server.id for server in servers if server.takes_cache_key)
    return named | {"openai"} if is_of_openai(settings.openai_base_url) else named


def make_scripted(settings: "Settings", provider: str = "scripted") -> ChatModel:
    from stint.models.scripted.model import DEMO, Scripted  # noqa: PLC0415

    prefix = f"{provider}/"
    names = [name.removeprefix(prefix) for name in settings.model_ids if name.startswith(prefix)]
    return Scripted(settings.scripted_word_seconds, {DEMO, *names}, provider)


def make_openai(settings: "Settings", fetch: Fetch) -> ChatModel:
    """Return the model. Images by URL are fetched here, unless the server is OpenAI's own.

    Another server may be in a private network.
    """
    from stint.models.openai_compatible import OpenAICompatible  # noqa: PLC0415

    key = ApiKey(settings.openai_api_key.get_secret_value(), settings.openai_secret_arn)
    stall = settings.model_stall_seconds
    model = OpenAICompatible(settings.openai_base_url, key.read, provider="openai", stall_timeout=stall)
    return model if model.is_of_openai else fetch_images(model, settings, fetch)


def make_named(server: "ModelServer", settings: "Settings", fetch: Fetch) -> ChatModel:
    """Return the models of a named server, with its default parameters."""
    model, defaults = connect_to(server, settings, fetch), server.defaults.to_decoding()
    if defaults == Decoding():
        return model
    return DefaultParameters(model, defaults, f"the defaults of provider {server.id!r} in STINT_PROVIDERS")


def connect_to(server: "ModelServer", settings: "Settings", fetch: Fetch) -> ChatModel:
    """Return the models of a named server. Images by URL are fetched here, unless the server is OpenAI's own."""
    from stint.models.openai_compatible import OpenAICompatible  # noqa: PLC0415

    if server.kind == "scripted":
        return make_scripted(settings, server.id)
    if server.kind == "bedrock":
        return SanitizedToolNames(make_bedrock(settings, fetch, server.region))
    if server.kind == "bedrock-openai":
        return SanitizedToolNames(fetch_images(make_bedrock_openai(server, settings), settings, fetch))
    key, stall = server.read_key(settings), settings.model_stall_seconds
    names = server.setting_names
    model = OpenAICompatible(
        server.base_url, key, api=server.api, provider=server.id, settings=names, stall_timeout=stall
    )
    return SanitizedToolNames(model if model.is_of_openai else fetch_images(model, settings, fetch))


def make_bedrock(settings: "Settings", fetch: Fetch, region: str = "") -> ChatModel:
    from stint.models.bedrock.model import Bedrock  # noqa: PLC0415
    from stint.providers.bedrock.client import connect  # noqa: PLC0415

    chosen, stall_timeout = region or settings.bedrock_region or None, settings.model_stall_seconds
    return fetch_images(Bedrock(lambda: connect(chosen, stall_timeout=stall_timeout)), settings, fetch)


def make_bedrock_openai(server: "ModelServer", settings: "Settings") -> ChatModel:
    """Return the models of one of Bedrock's endpoints of OpenAI's APIs. Requests are signed."""
    from stint.models.bedrock_openai.endpoints import (  # noqa: PLC0415
        BedrockEndpoint,
        RequestSigner,
        find_region,
    )
    from stint.models.openai_compatible import OpenAICompatible  # noqa: PLC0415

    region = server.region or settings.bedrock_region or find_region()
    endpoint = BedrockEndpoint(region, server.endpoint, server.base_url, server.api)
    return OpenAICompatible(
        endpoint.base_url,
        routes=endpoint.routes,
        provider=server.id,
        sign=RequestSigner(region, endpoint.service).sign,
        settings=server.setting_names,
        stall_timeout=settings.model_stall_seconds,
    )


def fetch_images(model: ChatModel, settings: "Settings", fetch: Fetch) -> ChatModel:
    """Return a model whose images at URLs are fetched here."""
    return FetchedImages(model, fetch, image_bytes(settings))


def image_bytes(settings: "Settings") -> int:
    """Return the maximum of all fetched images of a model call."""
    return min(MOST_BYTES, 2 * settings.max_fetched_bytes)
