"""Request of a server's list of models, which shows whether it can be reached and accepts the key."""

from stint.providers.openai.connections import ConnectionTrace
from stint.providers.openai.server import REQUEST_ERRORS, OpenAIServer


async def request_models(server: OpenAIServer) -> int:
    """Return the status of `GET {base_url}/models`. The list, which may be long, is not read.

    Raises:
        ModelError: there is no answer, or the key cannot be sent.
    """
    key, trace = await server.read_key(), ConnectionTrace()
    options = server.options(key, "application/json", trace)
    try:
        async with server.connections.client().stream("GET", server.url("models"), **options) as response:
            return int(response.status_code)
    except REQUEST_ERRORS as error:
        raise server.failure(error, trace).error from error
