"""Fake models, and injected failures of DynamoDB."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import TYPE_CHECKING, Any

import httpx
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from tests.clock import CLOCK

from stint.domain.errors import DeadlineExceeded, ModelError
from stint.domain.inference import Accepted, Finished, FinishReason, InferenceRequest, ModelChunk, TextChunk
from stint.models.scripted.model import DEMO, Scripted

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest

HEARTBEAT = 30.0


class Recorder:
    """The scripted model, for any model name, that records its requests."""

    def __init__(self) -> None:
        self.scripted = Scripted(word_delay=0)
        self.requests: list[InferenceRequest] = []

    def check(self, request: InferenceRequest) -> None:
        self.scripted.check(replace(request, model=DEMO))

    async def count_tokens(self, request: InferenceRequest) -> int:
        return await self.scripted.count_tokens(request)

    def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        self.requests.append(request)
        return self.scripted.stream(replace(request, model=DEMO))


class Silence(threading.Event):
    """The silence of a model, during which the clock advances until a test has received enough heartbeats."""

    async def pass_time(self) -> None:
        while not self.is_set():
            CLOCK.move(HEARTBEAT)
            await asyncio.to_thread(self.wait, 0.5)


@dataclass
class Faulty:
    """A model whose name selects a failure or a delay after it has accepted the request."""

    silence: Silence = field(default_factory=Silence)

    def check(self, request: InferenceRequest) -> None:
        pass

    async def count_tokens(self, request: InferenceRequest) -> int:
        return len(request.messages)

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        yield Accepted()
        match request.model:
            case "crash":
                raise ZeroDivisionError("a fault of the adapter")
            case "late":
                raise DeadlineExceeded("The time was over.")
            case "slow-failure":
                await self.silence.pass_time()
                raise ModelError("the model gave up")
            case "gated":
                await asyncio.to_thread(self.silence.wait)
                yield TextChunk("awake")
            case "slow":
                await self.silence.pass_time()
                yield TextChunk("awake")
            case "line-breaks":
                yield TextChunk("one\u2028two\u0085three\u2029four\nfive\rsix")
            case "quick-steps":
                for _ in range(12):
                    CLOCK.move(HEARTBEAT / 8)
                    await asyncio.sleep(0)
                    yield TextChunk("tick ")
        yield Finished(FinishReason.stop)


class Raw(BytesIO):
    """A response body with the interface that botocore expects."""

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self.read()


class Faults:
    """Failures that replace responses of DynamoDB. The SDK's retries are off, so one is enough."""

    def __init__(self, client: Any) -> None:
        self.operation = ""
        self.left = 0
        self.code = ""
        self.performed = False
        self.seen: list[str] | None = None
        client.meta.events.register("before-send.dynamodb", self.answer)

    @contextmanager
    def fail(
        self, operation: str, code: str = "ThrottlingException", *, times: int = 1000, performed: bool = False
    ) -> Iterator[None]:
        """Make an operation fail. A `performed` one takes effect, and only its response is lost."""
        self.operation, self.code, self.left, self.performed = operation, code, times, performed
        try:
            yield
        finally:
            self.left = 0

    @contextmanager
    def watch(self) -> Iterator[list[str]]:
        """Yield a list to which the operation and the body of each request are appended."""
        self.seen = []
        try:
            yield self.seen
        finally:
            self.seen = None

    def answer(self, request: "AWSPreparedRequest", **_: Any) -> AWSResponse | None:
        url, target = str(request.url), request.headers["X-Amz-Target"]
        target = target.decode() if isinstance(target, bytes) else target
        if self.seen is not None:
            self.seen.append(f"{target} {request.body!r}")
        if not self.left or not target.endswith(f".{self.operation}"):
            return None
        self.left -= 1
        if self.performed:
            assert isinstance(request.body, bytes)
            httpx.post(url, headers=dict(request.headers.items()), content=request.body, trust_env=False, timeout=120)
        body = Raw(f'{{"__type": "com.amazonaws#{self.code}", "message": "as the test asked"}}'.encode())
        return AWSResponse(url, 500 if self.performed else 400, HTTPHeaders(), body)
