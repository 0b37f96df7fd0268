"""The chat models of one Settings object. Each provider's adapter is made when first used."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from stint.models.port import ChatModel
from stint.models.routing import DEMO_MODEL, Router
from stint.models.tool_names import PlainToolNames

if TYPE_CHECKING:
    from stint.bootstrap.adapters import Adapters
    from stint.bootstrap.model_servers import ModelServer


def make_router(adapters: "Adapters") -> Router:
    """Return the router of the chat models."""
    models: dict[str, Callable[[], ChatModel]] = {
        **({"scripted": partial(make_scripted, adapters)} if adapters.settings.scripted_models else {}),
        "openai": lambda: PlainToolNames(make_openai(adapters)),
        "bedrock": lambda: PlainToolNames(make_bedrock(adapters)),
        **{server.id: partial(make_named, adapters, server) for server in adapters.model_servers},
    }
    return Router(models, adapters.settings.default_model)


def make_scripted(adapters: "Adapters") -> ChatModel:
    from stint.models.scripted.model import Scripted  # noqa: PLC0415

    names = [name for name in (DEMO_MODEL, *adapters.settings.model_ids) if name.startswith("scripted/")]
    return Scripted(adapters.settings.scripted_word_seconds, {name.removeprefix("scripted/") for name in names})


def make_openai(adapters: "Adapters") -> ChatModel:
    """Return the model. Images by URL are fetched here, unless the server is OpenAI's own.

    Another server may be in a private network.
    """
    from stint.models.fetched_images import FetchedImages  # noqa: PLC0415
    from stint.models.openai.model import OpenAICompatible  # noqa: PLC0415
    from stint.providers.api_key import ApiKey  # noqa: PLC0415

    settings = adapters.settings
    key = ApiKey(settings.openai_api_key.get_secret_value(), settings.openai_secret_arn)
    model = OpenAICompatible(settings.openai_base_url, key.read, stall_timeout=settings.model_stall_seconds)
    return model if model.is_of_openai else FetchedImages(model, adapters.fetch, adapters.image_bytes)


def make_named(adapters: "Adapters", server: "ModelServer") -> ChatModel:
    """Return the models of a named server. Images by URL are fetched here, unless the server is OpenAI's own."""
    from stint.models.fetched_images import FetchedImages  # noqa: PLC0415
    from stint.models.openai.model import OpenAICompatible  # noqa: PLC0415

    if server.kind == "bedrock":
        return PlainToolNames(make_bedrock(adapters, server.region))
    key, stall = server.read_key(adapters.settings), adapters.settings.model_stall_seconds
    model = OpenAICompatible(server.base_url, key, settings=server.setting_names, stall_timeout=stall)
    return PlainToolNames(model if model.is_of_openai else FetchedImages(model, adapters.fetch, adapters.image_bytes))


def make_bedrock(adapters: "Adapters", region: str = "") -> ChatModel:
    from stint.models.bedrock.model import Bedrock  # noqa: PLC0415
    from stint.models.fetched_images import FetchedImages  # noqa: PLC0415
    from stint.providers.bedrock.client import connect  # noqa: PLC0415

    chosen, stall_timeout = region or adapters.settings.bedrock_region or None, adapters.settings.model_stall_seconds
    return FetchedImages(
        Bedrock(lambda: connect(chosen, stall_timeout=stall_timeout)), adapters.fetch, adapters.image_bytes
    )
