"""Concrete adapters, made when first used: their libraries are no cost to the cold start of who does not use them."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from pydantic import SecretStr

from stint.documents.served import Served
from stint.domain.errors import ModelError, ToolUnavailable
from stint.models.api_key import ApiKey
from stint.models.port import Model
from stint.models.routing import Router
from stint.models.tool_names import PlainToolNames
from stint.settings import load_settings
from stint.shields.port import ShieldProvider
from stint.tools.port import ToolProvider

if TYPE_CHECKING:
    from stint.net.guard import Guard

T = TypeVar("T")

DEMO_MODEL = "scripted/demo"
"""The id of the scripted model that is served wherever there are scripted models, listed or not."""


class Lazily(Mapping[str, T]):
    """Things that are made when first asked for: a provider's libraries are no cost to who does not use it."""

    def __init__(self, makers: Mapping[str, Callable[[], T]]) -> None:
        self.makers = makers
        self.made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self.made:
            self.made[name] = self.makers[name]()
        return self.made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.makers)

    def __len__(self) -> int:
        return len(self.makers)


@cache
def make_router() -> Router:
    models: dict[str, Callable[[], Model]] = {
        **({"scripted": make_scripted} if load_settings().scripted_models else {}),
        "openai": lambda: PlainToolNames(make_openai()),
        "bedrock": lambda: PlainToolNames(make_bedrock()),
    }
    return Router(models, load_settings().default_model)


def make_scripted() -> Model:
    from stint.models.scripted.model import Scripted  # noqa: PLC0415

    settings = load_settings()
    names = [name for name in (DEMO_MODEL, *settings.model_ids) if name.startswith("scripted/")]
    return Scripted(settings.scripted_word_seconds, {name.removeprefix("scripted/") for name in names})


def make_openai() -> Model:
    """Images behind URLs are fetched here, unless OpenAI's own servers do it: another one may stand in our network."""
    from stint.models.fetched_images import FetchedImages  # noqa: PLC0415
    from stint.models.openai.model import OpenAICompatible  # noqa: PLC0415

    settings = load_settings()
    key = ApiKey(settings.openai_api_key.get_secret_value(), settings.openai_secret_arn)
    model = OpenAICompatible(settings.openai_base_url, key, stall_timeout=settings.model_stall_seconds)
    return model if model.is_of_openai else FetchedImages(model, fetch)


def make_bedrock() -> Model:
    from stint.models.bedrock.model import Bedrock, connect  # noqa: PLC0415
    from stint.models.fetched_images import FetchedImages  # noqa: PLC0415

    settings = load_settings()
    region, stall_timeout = settings.bedrock_region or None, settings.model_stall_seconds
    return FetchedImages(Bedrock(lambda: connect(region, stall_timeout=stall_timeout)), fetch)


@cache
def make_guard() -> "Guard":
    from stint.net.guard import Guard  # noqa: PLC0415

    settings = load_settings()
    first, _, last = settings.refused_ports.partition("-")
    ports = range(int(first or 0), int(last or -1) + 1)
    return Guard(settings.allowed_hosts.split(","), refused=[settings.runtime_api], refused_ports=ports)


async def fetch(url: str) -> Served:
    """Get a document through the guard."""
    return await make_guard().fetch(url)


async def check_url(url: str) -> None:
    """Refuse a URL that the guard would not let be called."""
    await make_guard().check(url)


def tool_key(name: str, value: SecretStr) -> Callable[[], str | None]:
    """Give the key of a service behind a tool, when it is asked for."""
    key = ApiKey(value.get_secret_value(), load_settings().tools_secret_arn, name)

    def read() -> str | None:
        try:
            return key()
        except ModelError as error:  # in the words of the models' own secret
            raise ToolUnavailable(
                f"The key {name} could not be read from Secrets Manager. Check the parameter ToolsSecretArn and the "
                "function's permission to read it."
            ) from error

    return read


def make_mcp() -> ToolProvider:
    from stint.tools.mcp.provider import McpTools  # noqa: PLC0415

    return McpTools(make_guard(), timeout=load_settings().mcp_seconds)


def make_tavily() -> ToolProvider:
    from stint.tools.search.engines import Tavily  # noqa: PLC0415
    from stint.tools.search.web_search import WebSearch  # noqa: PLC0415

    settings = load_settings()
    engine = Tavily(make_guard(), base_url=settings.tavily_base_url)
    return WebSearch(engine, tool_key("TAVILY_SEARCH_API_KEY", settings.tavily_api_key))


def make_brave() -> ToolProvider:
    from stint.tools.search.engines import Brave  # noqa: PLC0415
    from stint.tools.search.web_search import WebSearch  # noqa: PLC0415

    settings = load_settings()
    engine = Brave(make_guard(), base_url=settings.brave_base_url)
    return WebSearch(engine, tool_key("BRAVE_SEARCH_API_KEY", settings.brave_api_key))


def make_wolfram() -> ToolProvider:
    from stint.tools.search.wolfram_alpha import WolframAlpha  # noqa: PLC0415

    settings = load_settings()
    app_id = tool_key("WOLFRAM_ALPHA_API_KEY", settings.wolfram_api_key)
    return WolframAlpha(make_guard(), app_id, base_url=settings.wolfram_base_url)


def make_http_endpoints() -> ToolProvider:
    from stint.tools.http.provider import HttpEndpoints  # noqa: PLC0415

    return HttpEndpoints(make_guard())


def make_lambda_functions() -> ToolProvider:
    from stint.tools.lambda_function.provider import LambdaFunctions  # noqa: PLC0415

    return LambdaFunctions(load_settings().own_functions.split(","))


@cache
def make_tool_providers() -> Mapping[str, ToolProvider]:
    return Lazily(
        {
            "model-context-protocol": make_mcp,
            "tavily-search": make_tavily,
            "brave-search": make_brave,
            "wolfram-alpha": make_wolfram,
            "remote-execution": make_http_endpoints,
            "lambda-function": make_lambda_functions,
        }
    )


def make_deny_list() -> ShieldProvider:
    from stint.shields.deny_list import DenyList  # noqa: PLC0415

    return DenyList()


def make_llama_guard() -> ShieldProvider:
    from stint.shields.llama_guard import LlamaGuard  # noqa: PLC0415

    return LlamaGuard(make_router().resolve)


def make_bedrock_guardrails() -> ShieldProvider:
    from stint.models.bedrock.model import connect  # noqa: PLC0415
    from stint.shields.bedrock_guardrails import STALL_SECONDS, BedrockGuardrails  # noqa: PLC0415

    region = load_settings().bedrock_region or None
    return BedrockGuardrails(lambda: connect(region, stall_timeout=STALL_SECONDS))


@cache
def make_shield_providers() -> Mapping[str, ShieldProvider]:
    return Lazily(
        {
            "deny-list": make_deny_list,
            "llama-guard": make_llama_guard,
            "bedrock-guardrails": make_bedrock_guardrails,
        }
    )
