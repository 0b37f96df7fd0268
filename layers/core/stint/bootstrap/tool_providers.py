"""The tool providers of one Settings object. Each is made when first used."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from pydantic import SecretStr

from stint.bootstrap.lazy_mapping import LazyMapping
from stint.caller import require_tenant
from stint.domain.errors import ModelError, ToolUnavailable
from stint.lazy import Lazy, lazy
from stint.providers.api_key import ApiKey
from stint.tools.port import CODE_PROVIDER, IMAGE_MODELS, ToolProvider

if TYPE_CHECKING:
    from stint.bootstrap.model_servers import ModelServer
    from stint.net.guard import Guard
    from stint.settings import Settings
    from stint.tools.code_interpreter.provider import CodeInterpreter
    from stint.tools.code_interpreter.runs import CodeRunner
    from stint.tools.http.provider import HttpEndpoints
    from stint.tools.lambda_function.provider import LambdaFunctions
    from stint.tools.mcp.provider import McpTools
    from stint.tools.search.engines import Brave, Tavily
    from stint.tools.search.web_search import SearchEngine, WebSearch
    from stint.tools.search.wolfram_alpha import WolframAlpha

T = TypeVar("T")
Part: TypeAlias = Lazy["ToolAdapters", T]


def make_tool_providers(
    settings: "Settings",
    get_guard: "Callable[[], Guard]",
    get_servers: "Callable[[], Sequence[ModelServer]]" = lambda: (),
) -> Mapping[str, ToolProvider]:
    """Return the tool providers by their ids. Their URLs pass the guard. `get_servers` returns the model servers."""
    adapters = ToolAdapters(settings, get_guard)
    images = {IMAGE_MODELS: lambda: make_images(settings, get_guard(), get_servers())} if settings.image_model else {}
    sandbox = {CODE_PROVIDER: lambda: adapters.code_interpreter} if settings.runs_code else {}
    return LazyMapping(
        {
            "model-context-protocol": lambda: adapters.mcp,
            "tavily-search": lambda: adapters.tavily_search,
            "brave-search": lambda: adapters.brave_search,
            "wolfram-alpha": lambda: adapters.wolfram_alpha,
            "remote-execution": lambda: adapters.http_endpoints,
            "lambda-function": lambda: adapters.lambda_functions,
            **sandbox,
            **images,
        }
    )


class ToolAdapters:
    """The adapters of tools."""

    def __init__(self, settings: "Settings", get_guard: "Callable[[], Guard]") -> None:
        self.settings, self.get_guard = settings, get_guard

    @property
    def engines(self) -> "Mapping[str, SearchEngine]":
        """Return the search engines by the names that agents use."""
        return {"brave": self.brave, "tavily": self.tavily}

    brave: "Part[Brave]" = lazy(
        "stint.tools.search.engines:Brave",
        lambda self, cls: cls(self.get_guard(), base_url=self.settings.brave_base_url),
    )
    tavily: "Part[Tavily]" = lazy(
        "stint.tools.search.engines:Tavily",
        lambda self, cls: cls(self.get_guard(), base_url=self.settings.tavily_base_url),
    )
    brave_search: "Part[WebSearch]" = lazy(
        "stint.tools.search.web_search:WebSearch",
        lambda self, cls: cls(
            self.brave, tool_key(self.settings, "BRAVE_SEARCH_API_KEY", self.settings.brave_api_key), self.engines
        ),
    )
    tavily_search: "Part[WebSearch]" = lazy(
        "stint.tools.search.web_search:WebSearch",
        lambda self, cls: cls(
            self.tavily, tool_key(self.settings, "TAVILY_SEARCH_API_KEY", self.settings.tavily_api_key), self.engines
        ),
    )
    wolfram_alpha: "Part[WolframAlpha]" = lazy(
        "stint.tools.search.wolfram_alpha:WolframAlpha",
        lambda self, cls: cls(
            self.get_guard(),
            tool_key(self.settings, "WOLFRAM_ALPHA_API_KEY", self.settings.wolfram_api_key),
            base_url=self.settings.wolfram_base_url,
        ),
    )
    mcp: "Part[McpTools]" = lazy(
        "stint.tools.mcp.provider:McpTools", lambda self, cls: cls(self.get_guard(), timeout=self.settings.mcp_seconds)
    )
    http_endpoints: "Part[HttpEndpoints]" = lazy(
        "stint.tools.http.provider:HttpEndpoints", lambda self, cls: cls(self.get_guard())
    )
    lambda_functions: "Part[LambdaFunctions]" = lazy(
        "stint.tools.lambda_function.provider:LambdaFunctions",
        lambda self, cls: cls(self.settings.own_functions.split(",")),
    )
    code_interpreter: "Part[CodeInterpreter]" = lazy(
        "stint.tools.code_interpreter.provider:CodeInterpreter", lambda self, cls: cls(make_code_runner(self.settings))
    )


def make_code_runner(settings: "Settings") -> "CodeRunner":
    """Return the place that runs code for the tenant of the current code."""
    if settings.agentcore_interpreter:
        from stint.tools.code_interpreter.agentcore import AgentCore  # noqa: PLC0415

        return AgentCore(settings.agentcore_interpreter)
    from stint.tools.code_interpreter.sandbox import Sandbox  # noqa: PLC0415

    return Sandbox(settings.sandbox_function, require_tenant)


def make_images(settings: "Settings", guard: "Guard", servers: "Sequence[ModelServer]") -> ToolProvider:
    from stint.bootstrap.image_models import make_image_generation  # noqa: PLC0415

    return make_image_generation(settings, guard, servers)


def tool_key(settings: "Settings", name: str, value: SecretStr) -> Callable[[], str | None]:
    """Return a function that reads the key of a tool's service."""
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
