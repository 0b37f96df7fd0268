"""The tool providers of one Settings object. Each is made when first used."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import SecretStr

from stint.bootstrap.lazy_mapping import LazyMapping
from stint.domain.errors import ModelError, ToolUnavailable
from stint.tools.port import CODE_PROVIDER, IMAGE_MODELS, ToolProvider

if TYPE_CHECKING:
    from stint.bootstrap.model_servers import ModelServer
    from stint.net.guard import Guard
    from stint.settings import Settings
    from stint.tools.code_interpreter.runs import CodeRunner
    from stint.tools.search.web_search import SearchEngine


def make_tool_providers(
    settings: "Settings",
    get_guard: "Callable[[], Guard]",
    get_servers: "Callable[[], Sequence[ModelServer]]" = lambda: (),
) -> Mapping[str, ToolProvider]:
    """Return the tool providers by their ids. Their URLs pass the guard. `get_servers` returns the model servers."""
    images = {IMAGE_MODELS: lambda: make_images(settings, get_guard(), get_servers())} if settings.image_model else {}
    sandbox = {CODE_PROVIDER: lambda: make_code_interpreter(settings)} if settings.runs_code else {}
    return LazyMapping(
        {
            "model-context-protocol": lambda: make_mcp(settings, get_guard()),
            "tavily-search": lambda: make_tavily(settings, get_guard()),
            "brave-search": lambda: make_brave(settings, get_guard()),
            "wolfram-alpha": lambda: make_wolfram(settings, get_guard()),
            "remote-execution": lambda: make_http_endpoints(get_guard()),
            "lambda-function": lambda: make_lambda_functions(settings),
            **sandbox,
            **images,
        }
    )


def make_mcp(settings: "Settings", guard: "Guard") -> ToolProvider:
    from stint.tools.mcp.provider import McpTools  # noqa: PLC0415

    return McpTools(guard, timeout=settings.mcp_seconds)


def make_tavily(settings: "Settings", guard: "Guard") -> ToolProvider:
    from stint.tools.search.web_search import WebSearch  # noqa: PLC0415

    engines = make_engines(settings, guard)
    return WebSearch(engines["tavily"], tool_key(settings, "TAVILY_SEARCH_API_KEY", settings.tavily_api_key), engines)


def make_brave(settings: "Settings", guard: "Guard") -> ToolProvider:
    from stint.tools.search.web_search import WebSearch  # noqa: PLC0415

    engines = make_engines(settings, guard)
    return WebSearch(engines["brave"], tool_key(settings, "BRAVE_SEARCH_API_KEY", settings.brave_api_key), engines)


def make_engines(settings: "Settings", guard: "Guard") -> "dict[str, SearchEngine]":
    """Return the search engines by the names that agents use."""
    from stint.tools.search.engines import Brave, Tavily  # noqa: PLC0415

    return {
        "brave": Brave(guard, base_url=settings.brave_base_url),
        "tavily": Tavily(guard, base_url=settings.tavily_base_url),
    }


def make_wolfram(settings: "Settings", guard: "Guard") -> ToolProvider:
    from stint.tools.search.wolfram_alpha import WolframAlpha  # noqa: PLC0415

    app_id = tool_key(settings, "WOLFRAM_ALPHA_API_KEY", settings.wolfram_api_key)
    return WolframAlpha(guard, app_id, base_url=settings.wolfram_base_url)


def make_http_endpoints(guard: "Guard") -> ToolProvider:
    from stint.tools.http.provider import HttpEndpoints  # noqa: PLC0415

    return HttpEndpoints(guard)


def make_lambda_functions(settings: "Settings") -> ToolProvider:
    from stint.tools.lambda_function.provider import LambdaFunctions  # noqa: PLC0415

    return LambdaFunctions(settings.own_functions.split(","))


def make_code_interpreter(settings: "Settings") -> ToolProvider:
    from stint.tools.code_interpreter.provider import CodeInterpreter  # noqa: PLC0415

    return CodeInterpreter(make_code_runner(settings))


def make_code_runner(settings: "Settings") -> "CodeRunner":
    """Return the place that runs code for the tenant of the current code."""
    if settings.agentcore_interpreter:
        from stint.tools.code_interpreter.agentcore import AgentCore  # noqa: PLC0415

        return AgentCore(settings.agentcore_interpreter)
    from stint.caller import require_tenant  # noqa: PLC0415
    from stint.tools.code_interpreter.sandbox import Sandbox  # noqa: PLC0415

    return Sandbox(settings.sandbox_function, require_tenant)


def make_images(settings: "Settings", guard: "Guard", servers: "Sequence[ModelServer]") -> ToolProvider:
    from stint.bootstrap.image_models import make_image_generation  # noqa: PLC0415

    return make_image_generation(settings, guard, servers)


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
