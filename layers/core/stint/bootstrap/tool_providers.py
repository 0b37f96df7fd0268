"""The tool providers of one Settings object. Each is made when first used."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from pydantic import SecretStr

from stint.bootstrap.lazy_mapping import LazyMapping
from stint.domain.errors import ModelError, ToolUnavailable
from stint.tools.port import RAG_RUNTIME, ToolProvider

if TYPE_CHECKING:
    from stint.bootstrap.adapters import Adapters
    from stint.bootstrap.rag import RAGServices
    from stint.settings import Settings


def make_tool_providers(adapters: "Adapters") -> Mapping[str, ToolProvider]:
    """Return the tool providers by their ids."""
    makers = {
        "model-context-protocol": make_mcp,
        "tavily-search": make_tavily,
        "brave-search": make_brave,
        "wolfram-alpha": make_wolfram,
        "remote-execution": make_http_endpoints,
        "lambda-function": make_lambda_functions,
    }
    return LazyMapping({name: partial(make, adapters) for name, make in makers.items()})


def with_knowledge(
    providers: Mapping[str, ToolProvider], make_rag: "Callable[[], RAGServices]"
) -> Mapping[str, ToolProvider]:
    """Return the providers of tools with that of a tenant's vector dbs."""

    def make_knowledge_tools() -> ToolProvider:
        from stint.tools.knowledge.provider import KnowledgeTools  # noqa: PLC0415

        return KnowledgeTools(lambda: make_rag().rag.search_knowledge)

    given = {name: partial(providers.__getitem__, name) for name in providers}
    return LazyMapping({RAG_RUNTIME: make_knowledge_tools, **given})


def make_mcp(adapters: "Adapters") -> ToolProvider:
    from stint.tools.mcp.provider import McpTools  # noqa: PLC0415

    return McpTools(adapters.guard, timeout=adapters.settings.mcp_seconds)


def make_tavily(adapters: "Adapters") -> ToolProvider:
    from stint.tools.search.engines import Tavily  # noqa: PLC0415
    from stint.tools.search.web_search import WebSearch  # noqa: PLC0415

    settings = adapters.settings
    engine = Tavily(adapters.guard, base_url=settings.tavily_base_url)
    return WebSearch(engine, tool_key(settings, "TAVILY_SEARCH_API_KEY", settings.tavily_api_key))


def make_brave(adapters: "Adapters") -> ToolProvider:
    from stint.tools.search.engines import Brave  # noqa: PLC0415
    from stint.tools.search.web_search import WebSearch  # noqa: PLC0415

    settings = adapters.settings
    engine = Brave(adapters.guard, base_url=settings.brave_base_url)
    return WebSearch(engine, tool_key(settings, "BRAVE_SEARCH_API_KEY", settings.brave_api_key))


def make_wolfram(adapters: "Adapters") -> ToolProvider:
    from stint.tools.search.wolfram_alpha import WolframAlpha  # noqa: PLC0415

    settings = adapters.settings
    app_id = tool_key(settings, "WOLFRAM_ALPHA_API_KEY", settings.wolfram_api_key)
    return WolframAlpha(adapters.guard, app_id, base_url=settings.wolfram_base_url)


def make_http_endpoints(adapters: "Adapters") -> ToolProvider:
    from stint.tools.http.provider import HttpEndpoints  # noqa: PLC0415

    return HttpEndpoints(adapters.guard)


def make_lambda_functions(adapters: "Adapters") -> ToolProvider:
    from stint.tools.lambda_function.provider import LambdaFunctions  # noqa: PLC0415

    return LambdaFunctions(adapters.settings.own_functions.split(","))


def tool_key(settings: "Settings", name: str, value: SecretStr) -> Callable[[], str | None]:
    """Return a function that reads the key of a tool's service."""
    from stint.providers.api_key import ApiKey  # noqa: PLC0415

    key = ApiKey(value.get_secret_value(), settings.tools_secret_arn, name)

    def read() -> str | None:
        try:
            return key()
        except ModelError as error:  # the error's message names the secret of the models
            raise ToolUnavailable(
                f"The key {name} could not be read from Secrets Manager. Check the parameter ToolsSecretArn and "
                "the function's permission to read it."
            ) from error

    return read
