"""Concrete adapters, made when first used. A function does not load the libraries of adapters that it does not use."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

from pydantic import SecretStr

from stint.documents.limits import Limits, limits_for
from stint.documents.served import Served
from stint.domain.errors import ModelError, ToolUnavailable
from stint.models.port import ChatModel
from stint.models.routing import Router
from stint.models.tool_names import PlainToolNames
from stint.settings import Settings
from stint.shields.port import ShieldProvider
from stint.tools.port import ToolProvider

if TYPE_CHECKING:
    from stint.bootstrap.model_servers import ModelServer
    from stint.net.guard import Guard
    from stint.retrieval.embedder_router import EmbedderRouter
    from stint.retrieval.port import VectorIndex

T = TypeVar("T")

DEMO_MODEL = "scripted/demo"
"""The id of the scripted model that is always served if scripted models are enabled, listed or not."""


class LazyMapping(Mapping[str, T]):
    """A mapping whose values are made when first read."""

    def __init__(self, factories: Mapping[str, Callable[[], T]]) -> None:
        self._factories = factories
        self._values: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._values:
            self._values[name] = self._factories[name]()
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._factories)

    def __len__(self) -> int:
        return len(self._factories)


class Adapters:
    """The adapters of one Settings object. A router, tool providers and an index that are passed in replace
    them."""

    def __init__(
        self,
        settings: Settings,
        *,
        router: Router | None = None,
        tool_providers: Mapping[str, ToolProvider] | None = None,
        make_index: "Callable[[], VectorIndex] | None" = None,
    ) -> None:
        self.settings, self.make_index = settings, make_index
        self.router = router or self.make_router()
        self.tool_providers = self.make_tool_providers() if tool_providers is None else tool_providers
        self.shield_providers = self.make_shield_providers()

    @cached_property
    def guard(self) -> "Guard":
        from stint.net.guard import Guard  # noqa: PLC0415

        settings = self.settings
        first, _, last = settings.refused_ports.partition("-")
        ports = range(int(first or 0), int(last or -1) + 1)
        allowed, most_bytes = settings.allowed_hosts.split(","), settings.max_fetched_bytes
        return Guard(allowed, refused=[settings.runtime_api], refused_ports=ports, most_bytes=most_bytes)

    @cached_property
    def model_servers(self) -> "Sequence[ModelServer]":
        if not self.settings.providers:
            return ()
        from stint.bootstrap.model_servers import read_model_servers  # noqa: PLC0415

        return read_model_servers(self.settings.providers)

    @cached_property
    def embedders(self) -> "EmbedderRouter":
        from stint.bootstrap.embedders import make_embedder_router  # noqa: PLC0415

        return make_embedder_router(self.settings, self.model_servers)

    @cached_property
    def vector_index(self) -> "VectorIndex":
        from stint.bootstrap.retrieval import make_vector_index  # noqa: PLC0415

        return make_vector_index(self.settings) if self.make_index is None else self.make_index()

    @property
    def image_bytes(self) -> int:
        """Return the maximum of all fetched images of a model call."""
        from stint.models.fetched_images import MOST_BYTES  # noqa: PLC0415

        return min(MOST_BYTES, 2 * self.settings.max_fetched_bytes)

    @property
    def document_limits(self) -> Limits:
        """Return the limits of documents."""
        return limits_for(self.settings.max_fetched_bytes)

    async def fetch(self, url: str) -> Served:
        """Fetch a document through the guard."""
        return await self.guard.fetch(url)

    async def check_url(self, url: str) -> None:
        """Raise InvalidRequest for a URL that the guard refuses."""
        await self.guard.check(url)

    def make_router(self) -> Router:
        models: dict[str, Callable[[], ChatModel]] = {
            **({"scripted": self.make_scripted} if self.settings.scripted_models else {}),
            "openai": lambda: PlainToolNames(self.make_openai()),
            "bedrock": lambda: PlainToolNames(self.make_bedrock()),
        }
        for server in self.model_servers:
            models[server.id] = partial(self.make_named, server)
        return Router(models, self.settings.default_model)

    def make_tool_providers(self) -> Mapping[str, ToolProvider]:
        return LazyMapping(
            {
                "model-context-protocol": self.make_mcp,
                "tavily-search": self.make_tavily,
                "brave-search": self.make_brave,
                "wolfram-alpha": self.make_wolfram,
                "remote-execution": self.make_http_endpoints,
                "lambda-function": self.make_lambda_functions,
            }
        )

    def make_shield_providers(self) -> Mapping[str, ShieldProvider]:
        return LazyMapping(
            {
                "deny-list": self.make_deny_list,
                "llama-guard": self.make_llama_guard,
                "bedrock-guardrails": self.make_bedrock_guardrails,
            }
        )

    def make_scripted(self) -> ChatModel:
        from stint.models.scripted.model import Scripted  # noqa: PLC0415

        names = [name for name in (DEMO_MODEL, *self.settings.model_ids) if name.startswith("scripted/")]
        return Scripted(self.settings.scripted_word_seconds, {name.removeprefix("scripted/") for name in names})

    def make_openai(self) -> ChatModel:
        """Return the model. Images by URL are fetched here, unless the server is OpenAI's own.

        Another server may be in a private network.
        """
        from stint.models.fetched_images import FetchedImages  # noqa: PLC0415
        from stint.models.openai.model import OpenAICompatible  # noqa: PLC0415
        from stint.providers.api_key import ApiKey  # noqa: PLC0415

        settings = self.settings
        key = ApiKey(settings.openai_api_key.get_secret_value(), settings.openai_secret_arn)
        model = OpenAICompatible(settings.openai_base_url, key.read, stall_timeout=settings.model_stall_seconds)
        return model if model.is_of_openai else FetchedImages(model, self.fetch, self.image_bytes)

    def make_named(self, server: "ModelServer") -> ChatModel:
        """Return the models of a named server. Images by URL are fetched here, unless the server is OpenAI's own."""
        from stint.models.fetched_images import FetchedImages  # noqa: PLC0415
        from stint.models.openai.model import OpenAICompatible  # noqa: PLC0415

        if server.kind == "bedrock":
            return PlainToolNames(self.make_bedrock(server.region))
        key, stall = server.read_key(self.settings), self.settings.model_stall_seconds
        model = OpenAICompatible(server.base_url, key, settings=server.setting_names, stall_timeout=stall)
        return PlainToolNames(model if model.is_of_openai else FetchedImages(model, self.fetch, self.image_bytes))

    def make_bedrock(self, region: str = "") -> ChatModel:
        from stint.models.bedrock.model import Bedrock  # noqa: PLC0415
        from stint.models.fetched_images import FetchedImages  # noqa: PLC0415
        from stint.providers.bedrock.client import connect  # noqa: PLC0415

        chosen, stall_timeout = region or self.settings.bedrock_region or None, self.settings.model_stall_seconds
        return FetchedImages(
            Bedrock(lambda: connect(chosen, stall_timeout=stall_timeout)), self.fetch, self.image_bytes
        )

    def make_mcp(self) -> ToolProvider:
        from stint.tools.mcp.provider import McpTools  # noqa: PLC0415

        return McpTools(self.guard, timeout=self.settings.mcp_seconds)

    def make_tavily(self) -> ToolProvider:
        from stint.tools.search.engines import Tavily  # noqa: PLC0415
        from stint.tools.search.web_search import WebSearch  # noqa: PLC0415

        engine = Tavily(self.guard, base_url=self.settings.tavily_base_url)
        return WebSearch(engine, self.tool_key("TAVILY_SEARCH_API_KEY", self.settings.tavily_api_key))

    def make_brave(self) -> ToolProvider:
        from stint.tools.search.engines import Brave  # noqa: PLC0415
        from stint.tools.search.web_search import WebSearch  # noqa: PLC0415

        engine = Brave(self.guard, base_url=self.settings.brave_base_url)
        return WebSearch(engine, self.tool_key("BRAVE_SEARCH_API_KEY", self.settings.brave_api_key))

    def make_wolfram(self) -> ToolProvider:
        from stint.tools.search.wolfram_alpha import WolframAlpha  # noqa: PLC0415

        app_id = self.tool_key("WOLFRAM_ALPHA_API_KEY", self.settings.wolfram_api_key)
        return WolframAlpha(self.guard, app_id, base_url=self.settings.wolfram_base_url)

    def make_http_endpoints(self) -> ToolProvider:
        from stint.tools.http.provider import HttpEndpoints  # noqa: PLC0415

        return HttpEndpoints(self.guard)

    def make_lambda_functions(self) -> ToolProvider:
        from stint.tools.lambda_function.provider import LambdaFunctions  # noqa: PLC0415

        return LambdaFunctions(self.settings.own_functions.split(","))

    def make_deny_list(self) -> ShieldProvider:
        from stint.shields.deny_list import DenyList  # noqa: PLC0415

        return DenyList()

    def make_llama_guard(self) -> ShieldProvider:
        from stint.shields.llama_guard import LlamaGuard  # noqa: PLC0415

        return LlamaGuard(self.router.resolve)

    def make_bedrock_guardrails(self) -> ShieldProvider:
        from stint.providers.bedrock.client import connect  # noqa: PLC0415
        from stint.shields.bedrock_guardrails import STALL_SECONDS, BedrockGuardrails  # noqa: PLC0415

        region = self.settings.bedrock_region or None
        return BedrockGuardrails(lambda: connect(region, stall_timeout=STALL_SECONDS))

    def tool_key(self, name: str, value: SecretStr) -> Callable[[], str | None]:
        """Return a function that reads the key of a tool's service."""
        from stint.providers.api_key import ApiKey  # noqa: PLC0415

        key = ApiKey(value.get_secret_value(), self.settings.tools_secret_arn, name)

        def read() -> str | None:
            try:
                return key()
            except ModelError as error:  # the error's message names the secret of the models
                raise ToolUnavailable(
                    f"The key {name} could not be read from Secrets Manager. Check the parameter ToolsSecretArn and "
                    "the function's permission to read it."
                ) from error

        return read
