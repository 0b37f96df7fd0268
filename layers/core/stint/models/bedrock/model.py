"""Amazon Bedrock's models over ConverseStream.

No list says which parameters each model accepts, and models come and go. So a call is sent as the request asks. If the
model refuses a parameter that the answer does not depend on, the call is sent again without it. What a model has
refused is kept for the life of the process.
"""

import asyncio
import re
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar, cast

from botocore.exceptions import ClientError

from stint.domain.errors import NotSupported
from stint.domain.inference import DEFAULT_TIER, Accepted, InferenceRequest, ModelChunk
from stint.models.bedrock.answer import ConverseAnswer
from stint.models.bedrock.cache_points import add_cache_points, refused_points
from stint.models.bedrock.request import ConverseRequest, check_converse, write_converse
from stint.providers.bedrock.client import connect
from stint.providers.bedrock.errors import ERRORS, MALFORMED, explain, is_about_tier, message_of

if TYPE_CHECKING:
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient

COUNTED = ("messages", "system", "toolConfig", "additionalModelRequestFields")
DEFAULT = {"type": DEFAULT_TIER}
TOP_P = re.compile("top_?p", re.IGNORECASE)
REGION = re.compile(r"^(?:us|us-gov|eu|apac|ap|jp|au|ca|in|sa|me|af|global)\.")


if TYPE_CHECKING:
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient

T = TypeVar("T")


class ConverseCall:
    """A call in a thread of its own, because boto3's event stream blocks.

    The thread is not one of the event loop's, because slow calls would use those up. An event is read on request, so a
    slow reader slows the sender down through the socket.
    """

    def __init__(self, client: "Callable[[], BedrockRuntimeClient]", parameters: dict[str, Any]) -> None:
        self._client = client
        self._parameters = parameters
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bedrock")
        self._stream: Any = None
        self._events: Iterator[Any] = iter(())

    async def open(self) -> None:
        """Send the request, and wait for the first bytes of the answer."""
        await self._run(self._open)

    async def next_event(self) -> dict[str, Any] | None:
        """Return the next event; None at the end."""
        return await self._run(lambda: next(self._events, None))

    def close(self) -> None:
        """End the call without waiting. A blocked read is interrupted, and the thread closes the connection and ends.

        A request without an answer so far cannot be interrupted. Its thread ends with the answer or the timeout.
        """
        if self._stream is not None:
            with suppress(ValueError, RuntimeError, OSError):  # the answer was read to the end
                self._stream._raw_stream.shutdown()  # boto3's close would wait for the blocked read
        # In the same thread, so after the read that was interrupted: the connection is not thread-safe.
        self._thread.submit(self._release)
        self._thread.shutdown(wait=False)

    def _open(self) -> None:
        self._stream = self._client().converse_stream(**self._parameters)["stream"]
        self._events = iter(self._stream)

    def _release(self) -> None:
        if self._stream is not None:
            self._stream.close()

    async def _run(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, copy_context().run, function)


class Bedrock:
    """The models of ConverseStream. The client is made when first used, in the thread of that call.

    A request that a model refuses because of temperature 0 is sent again without temperature; because of temperature
    with top_p (Claude's later models), with temperature only; because of strict tools, with plain ones; because of a
    checkpoint of the cache, without those in this place; because of the service tier `default`, without it, which means
    the same. Later requests to the model are adapted at once.
    """

    def __init__(self, client: "Callable[[], BedrockRuntimeClient]" = connect) -> None:
        self._make_client = client
        self._made_client: BedrockRuntimeClient | None = None
        self._lock = threading.Lock()
        self._refused: dict[str, set[str]] = {}

    async def connect(self, model_id: str) -> None:  # noqa: ARG002 - the client is the same for all models
        """Make the client; see the port. Its first call opens the connection."""
        await asyncio.to_thread(self._client)

    def check(self, request: InferenceRequest) -> None:
        """Refuse parameters that Converse or the model's family lacks; see the port."""
        check_converse(request)

    async def count_tokens(self, request: InferenceRequest) -> int:
        """Count tokens with CountTokens, which is free; only some models support it.

        It requires a model's own id, so an inference profile's region is removed. A response format is not counted.
        """
        parameters = adapt_parameters(write_converse(request).parameters, self._refused_by(request.model))
        # CountTokens refuses all other parameters of the call.
        counted = {name: parameters[name] for name in COUNTED if name in parameters}
        try:
            answer = await asyncio.to_thread(
                lambda: self._client().count_tokens(
                    modelId=REGION.sub("", request.model), input={"converse": cast("Any", counted)}
                )
            )
        except ERRORS as error:
            if isinstance(error, ClientError) and "counting tokens" in message_of(error):
                raise NotSupported(f"Bedrock cannot count tokens for model {request.model!r}.") from error
            raise explain(error, parameters) from error
        return answer["inputTokens"]

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        """Start a model call, and yield its chunks; see the port."""
        written = write_converse(request)
        answer = ConverseAnswer(request.service_tier)
        call = await self._open(written)
        try:
            yield Accepted()
            while (event := await call.next_event()) is not None:
                for chunk in answer.feed(event):
                    yield chunk
        except (*ERRORS, *MALFORMED) as error:
            raise explain(error, written.parameters) from error
        finally:
            call.close()
        yield answer.finish()

    async def _open(self, written: ConverseRequest) -> ConverseCall:
        """Open a call. What a refusal may be about is tried, and remembered only if the adapted call is accepted.

        Bedrock quotes what callers have written, so a refusal may seem to be about something else. What was tried did
        not help if the same message comes again.
        """
        model, tried = written.parameters["modelId"], set[str]()
        found: dict[str, set[str]] = {}
        while True:
            refused = self._refused_by(model) | tried
            call = ConverseCall(self._client, adapt(written, refused))
            try:
                await call.open()
            except ERRORS as error:
                call.close()
                message = message_of(error) if isinstance(error, ClientError) else ""
                new = next(find_refused(written, message, refused), None)
                if new is None:
                    raise explain(error, written.parameters) from error
                # The same message again replaces what was tried after it the first time: that did not help.
                found[message] = new
                tried |= new
            except BaseException:
                call.close()
                raise
            else:
                if found:
                    self._refused[model] = self._refused_by(model).union(*found.values())
                return call

    def _refused_by(self, model: str) -> set[str]:
        """Return what a model is known to refuse."""
        return self._refused.get(model, set())

    def _client(self) -> "BedrockRuntimeClient":
        with self._lock:
            if self._made_client is None:
                self._made_client = self._make_client()
            return self._made_client


def find_refused(written: ConverseRequest, message: str, refused: set[str]) -> Iterator[set[str]]:
    """Yield what a refusal may be about, the most likely first, besides what is known to be `refused`."""
    parameters = written.parameters
    config = parameters.get("inferenceConfig", {})
    is_strict = any(tool["toolSpec"].get("strict") for tool in _tools(parameters))
    may_be: list[set[str]] = [
        {"serviceTier"} if parameters.get("serviceTier") == DEFAULT and is_about_tier(message) else set(),
        set(refused_points(message)) if written.points else set(),
        {"strict"} if "strict" in message and is_strict else set(),
    ]
    if "temperature" in message and config.get("temperature") == 0.0:
        may_be.append({"temperature"})
    elif "temperature" in message and {"temperature", "topP"} <= set(config) and TOP_P.search(message):
        may_be.append({"topP"})
    return (new for names in may_be if (new := names - refused))


def adapt(written: ConverseRequest, refused: set[str]) -> dict[str, Any]:
    """Return the parameters of a request without what its model refuses, and with checkpoints of the cache."""
    parameters = adapt_parameters(written.parameters, refused)
    if not written.points:
        return parameters
    return add_cache_points(parameters, written.points, written.lifetime, refused)


def adapt_parameters(parameters: dict[str, Any], refused: set[str]) -> dict[str, Any]:
    config = dict(parameters.get("inferenceConfig", {}))
    if "temperature" in refused and config.get("temperature") == 0.0:
        del config["temperature"]
    if "topP" in refused and "temperature" in config:
        config.pop("topP", None)
    adapted = {**parameters, "inferenceConfig": config}
    if "serviceTier" in refused and parameters.get("serviceTier") == DEFAULT:
        del adapted["serviceTier"]
    if "strict" in refused and _tools(parameters):
        plain = [{"toolSpec": {**tool["toolSpec"], "strict": False}} for tool in _tools(parameters)]
        adapted["toolConfig"] = {**parameters["toolConfig"], "tools": plain}
    return adapted


def _tools(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = parameters.get("toolConfig", {}).get("tools", [])
    return tools
