"""The header by which a request of OpenAI's Agents API is known.

Both APIs have `/v1/agents` and `/v1/agents/{agent_id}`, with other bodies and answers. OpenAI's SDK sends the header
with each request of its API, and no client of Llama Stack sends it. API Gateway cannot route by headers, so the
function `agents` decides.
"""

from starlette.datastructures import Headers
from starlette.routing import Match
from starlette.types import Scope

from stint.http.requests import LazyRouter

BETA_HEADER = "openai-beta"
AGENTS_BETA = "agents=v1"


class BetaRouter(LazyRouter):
    """The routes of a module, for requests with the header."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or not has_agents_beta(scope):
            return Match.NONE, {}
        return super().matches(scope)


def has_agents_beta(scope: Scope) -> bool:
    """Return whether a request names the Agents API, among other betas perhaps."""
    named = ",".join(Headers(scope=scope).getlist(BETA_HEADER))
    return AGENTS_BETA in [value.strip() for value in named.split(",")]
