"""Request of a server's list of models, which shows whether it can be reached and accepts the key."""

from stint.providers.openai.errors import ProviderFailure
from stint.providers.openai.server import OpenAIServer


async def request_models(server: OpenAIServer) -> int:
    """Return the status of `GET {base_url}/models`. The list, which may be long, is not read.

    Raises:
        ModelError: there is no answer, or the key cannot be sent.
    """
    try:
        async with server.open("GET", server.url("models")) as response:
            return response.status
    except ProviderFailure as failure:
        raise failure.error from failure.__cause__
