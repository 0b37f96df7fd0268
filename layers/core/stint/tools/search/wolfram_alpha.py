"""Wolfram|Alpha, through its Full Results API (products.wolframalpha.com/api/documentation)."""

from typing import Any

from stint.domain.errors import ToolUnavailable
from stint.domain.inference import ToolSignature
from stint.net.guard import Guard
from stint.tools.http_calls import ToolFailure, read_answer, read_query, send
from stint.tools.outcomes import TIMEOUT, failure, unknown_tool, write_json
from stint.tools.port import Invocation, Toolgroup, ToolOutcome
from stint.tools.search.api_keys import Key, find_key

SERVICE = "Wolfram|Alpha"
KEY_NAME = "wolfram_alpha_api_key"
WOLFRAM_ALPHA = ToolSignature(
    name="wolfram_alpha",
    description="Query WolframAlpha for computational knowledge",
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string", "description": "The query to compute"}},
        "required": ["query"],
    },
    repeatable=True,
)
# Fields without meaning for a model, of the whole answer and of each pod.
_RESULT_NOISE = {"assumptions", "datatypes", "error", "host", "id", "numpods", "parsetimedout", "parsetiming"}
_RESULT_NOISE |= {"recalculate", "related", "server", "timedout", "timedoutpods", "timing", "version"}
_POD_NOISE = {"error", "expressiontypes", "id", "infos", "numsubpods", "position", "scanner", "states"}


class WolframAlpha:
    """The tool `wolfram_alpha`. A registration needs no args.

    The result is Wolfram|Alpha's own JSON without technical fields, and without the pods after the one named "Result".
    `app_id` is the server's; a caller's is `wolfram_alpha_api_key` in the provider data, an agent's is `api_key` in the
    args of its toolgroup.
    """

    def __init__(
        self,
        guard: Guard,
        app_id: Key = None,
        *,
        base_url: str = "https://api.wolframalpha.com/v2",
        timeout: float = TIMEOUT,
    ) -> None:
        self._guard = guard
        self._app_id = app_id
        self._url = f"{base_url.rstrip('/')}/query"
        self._timeout = timeout

    async def check(self, _toolgroup: Toolgroup, /) -> None:
        """Accept any args; see the port."""

    def known_tools(self, _toolgroup: Toolgroup, _provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List the one tool; see the port."""
        return [WOLFRAM_ALPHA]

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List the one tool, without a request."""
        return self.known_tools(toolgroup, provider_data)

    async def invoke(self, _toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        """Query Wolfram|Alpha; see the port."""
        if invocation.tool_name != WOLFRAM_ALPHA.name:
            return unknown_tool(invocation.tool_name, [WOLFRAM_ALPHA.name])
        app_id = await find_key(KEY_NAME, self._app_id, invocation, SERVICE)
        try:
            query = read_query(invocation.arguments)
            parameters = {"input": query, "appid": app_id, "format": "plaintext", "output": "json"}
            response = await send(self._guard, SERVICE, "GET", self._url, timeout=self._timeout, params=parameters)
            return read_result(read_answer(SERVICE, response))
        except ToolFailure as error:
            return failure(str(error))


def read_result(answer: Any) -> ToolOutcome:
    """Convert a response for the model. Raises ToolFailure or ToolUnavailable if it has no answer."""
    result = answer.get("queryresult") if isinstance(answer, dict) else None
    if not isinstance(result, dict):
        raise ToolFailure(f"{SERVICE} returned a response in an undocumented form.")
    if isinstance(error := result.get("error"), dict):
        if str(error.get("code")) == "1":
            raise ToolUnavailable(f"{SERVICE} refused the app id")
        raise ToolFailure(f"{SERVICE} failed: {error.get('msg')}")
    shaped = {key: value for key, value in result.items() if key not in _RESULT_NOISE}
    if isinstance(pods := result.get("pods"), list):
        shaped["pods"] = read_pods(pods)
    return ToolOutcome(content=write_json({"queryresult": shaped}))


def read_pods(pods: list[Any]) -> list[dict[str, Any]]:
    """Return the pods up to the one named "Result", or all of them."""
    shaped: list[dict[str, Any]] = []
    for pod in pods:
        if isinstance(pod, dict):
            shaped.append({key: value for key, value in pod.items() if key not in _POD_NOISE})
            if pod.get("title") == "Result":
                break
    return shaped
