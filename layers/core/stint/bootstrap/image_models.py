"""The image models of one Settings object. Each is made when first used."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from stint.caller import ModelAccess, require_tenant
from stint.domain.tenant_limits import limits_of, parse_tenants
from stint.providers.api_key import ApiKey
from stint.tools.image_generation.port import MAX_IMAGE_BYTES, ImageModel
from stint.tools.image_generation.provider import TIMEOUT, ImageGeneration
from stint.tools.image_generation.router import ImageRouter

if TYPE_CHECKING:
    from stint.bootstrap.model_servers import ModelServer
    from stint.net.guard import Guard
    from stint.settings import Settings
    from stint.tools.image_generation.openai import Fetch


def make_image_generation(settings: "Settings", guard: "Guard", servers: "Sequence[ModelServer]") -> ImageGeneration:
    """Return the tool. Callers and tenants are limited to the models that they may use."""
    fetch, tenants = partial(guard.fetch, max_bytes=MAX_IMAGE_BYTES), parse_tenants(settings.tenants)
    models: dict[str, Callable[[], ImageModel]] = {
        **({"scripted": make_scripted} if settings.scripted_models else {}),
        "openai": lambda: make_openai(settings, fetch),
        "bedrock": lambda: make_bedrock(settings.bedrock_region),
        **{server.id: partial(make_named, server, settings, fetch) for server in servers},
    }
    router = ImageRouter(models, settings.image_model)
    return ImageGeneration(router, lambda: ModelAccess(limits_of(require_tenant(), tenants).models))


def make_scripted() -> ImageModel:
    from stint.tools.image_generation.scripted import ScriptedImages  # noqa: PLC0415

    return ScriptedImages()


def make_openai(settings: "Settings", fetch: "Fetch") -> ImageModel:
    from stint.tools.image_generation.openai import OpenAIImages  # noqa: PLC0415

    key = ApiKey(settings.openai_api_key.get_secret_value(), settings.openai_secret_arn)
    return OpenAIImages(fetch, settings.openai_base_url, key.read, stall_timeout=TIMEOUT)


def make_named(server: "ModelServer", settings: "Settings", fetch: "Fetch") -> ImageModel:
    """Return the image models of a named server."""
    if server.kind == "scripted":
        return make_scripted()
    if server.is_bedrock:
        return make_bedrock(server.region or settings.bedrock_region)
    from stint.tools.image_generation.openai import OpenAIImages  # noqa: PLC0415

    key = server.read_key(settings)
    return OpenAIImages(fetch, server.base_url, key, settings=server.setting_names, stall_timeout=TIMEOUT)


def make_bedrock(region: str) -> ImageModel:
    from stint.providers.bedrock.client import connect  # noqa: PLC0415
    from stint.tools.image_generation.bedrock import BedrockImages  # noqa: PLC0415

    return BedrockImages(lambda: connect(region or None, stall_timeout=TIMEOUT))
