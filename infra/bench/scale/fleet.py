"""Execution environments of the function `turns`, each with the composition that the function has.

An environment serves one request at a time, as on Lambda, so 10,000 streams are 10,000 environments: each with its own
caches, watch of stops and retry quota. Only what has no state is shared, and the transport of the client is replaced.
An attempt goes to the engine, and takes `ROUND_TRIP_SECONDS` of virtual time. Signatures, connections and HTTP are not
run.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import NoReturn

from infra.bench.scale.table_engine import TableEngine

from stint.apis.agents import AgentsServices
from stint.aws.dynamodb import DynamoDBClient, decode_response
from stint.aws.environment import AwsEnvironment
from stint.aws.errors import DynamoDBError, NoResponse
from stint.aws.retries import is_throttled
from stint.aws.service_client import Call
from stint.bootstrap.adapters import Adapters
from stint.bootstrap.agents import AgentsComposition
from stint.domain.errors import StoreUnavailable
from stint.domain.llama_stack.events import TurnFailed
from stint.domain.llama_stack.turns import TurnCreateRequest
from stint.domain.messages import UserMessage
from stint.services.runs.run_handle import RequestContext
from stint.settings import Settings
from stint.store.bucket import Bucket
from stint.store.store import Store

ROUND_TRIP_SECONDS = 0.005
"""Time of a call of DynamoDB without waiting; AWS speaks of single-digit milliseconds."""
TIMEOUT_SECONDS = 898.0
"""Time of an invocation until its last event."""


@dataclass
class Throttles:
    """Refusals by the operation: of attempts, of calls after all attempts, and of batches in part."""

    attempts: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    parts: Counter[str] = field(default_factory=Counter)


class EngineClient(DynamoDBClient):
    """The client, with its retries and quota, whose attempts go to the engine."""

    def __init__(self, engine: TableEngine, throttles: Throttles) -> None:
        super().__init__(ENVIRONMENT)
        self._engine, self._throttles = engine, throttles

    async def _call(self, call: Call) -> dict[str, object]:
        try:
            return await super()._call(call)
        except DynamoDBError as error:
            self._throttles.calls[call.operation] += is_refusal(error)
            raise

    async def _try(self, call: Call) -> dict[str, object]:
        await asyncio.sleep(ROUND_TRIP_SECONDS)
        response = await self._engine.handle(call.operation, call.body)
        try:
            answer = decode_response(response)
        except (DynamoDBError, NoResponse) as error:
            self._throttles.attempts[call.operation] += isinstance(error, DynamoDBError) and is_refusal(error)
            raise
        self._throttles.parts[call.operation] += bool(answer.get("UnprocessedKeys") or answer.get("UnprocessedItems"))
        return answer


def is_refusal(error: DynamoDBError) -> bool:
    return is_throttled(error.code, error.status) or any(
        each.get("Code") == "ThrottlingError" for each in error.reasons
    )


ENVIRONMENT = AwsEnvironment(
    {"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
)


class Environment(AgentsComposition):
    """A process of the function, with its own client and store."""

    def __init__(self, fleet: "Fleet") -> None:
        super().__init__(lambda: fleet.settings)
        self._fleet = fleet

    @cached_property
    def adapters(self) -> Adapters:
        return self._fleet.adapters

    @cached_property
    def store(self) -> Store:
        client = EngineClient(self._fleet.engine, self._fleet.throttles)
        bucket = Bucket("", no_objects, no_objects)
        return Store(client, self._fleet.engine.name, bucket, self.settings.key_layout)


def no_objects() -> NoReturn:
    raise RuntimeError("The load is to have no record that needs an object.")


@dataclass(frozen=True)
class Session:
    tenant: str
    agent_id: str
    session_id: str


@dataclass(frozen=True)
class TurnResult:
    """A turn, or its refusal, as its caller sees it. Times are in seconds."""

    first_event: float = 0.0
    whole: float = 0.0
    error: str = ""
    """The class of the error."""
    throttled: bool = False
    """Whether it is a 503 of the database."""


class Fleet:
    """The environments, which are made when no other one is free, and reused, the last used one first."""

    def __init__(self, engine: TableEngine, settings: Settings) -> None:
        self.settings = settings
        self.adapters = Adapters(self.settings)
        self.engine = engine
        self.throttles = Throttles()
        self.free: list[Environment] = []

    def take(self) -> Environment:
        if self.free:
            return self.free.pop()
        return Environment(self)

    def replace(self, count: int) -> None:
        """Begin with environments that have started, and have served nothing yet."""
        self.free = [Environment(self) for _ in range(count)]

    async def run_turn(self, session: Session, text: str) -> TurnResult:
        """Run a turn like its route, in an environment of its own."""
        environment = self.take()
        try:
            return await run_turn(environment.make_services(session.tenant), session, text)
        finally:
            self.free.append(environment)


async def run_turn(services: AgentsServices, session: Session, text: str) -> TurnResult:
    clock = asyncio.get_running_loop().time
    began = clock()
    first_event = 0.0
    request = TurnCreateRequest(messages=[UserMessage(content=text)], stream=True)
    error: Exception | None = None
    try:
        context = RequestContext(began + TIMEOUT_SECONDS)
        handle = await services.turn_requests.submit(session.agent_id, session.session_id, request, context)
        async for numbered in handle.events():
            first_event = first_event or clock() - began
            if isinstance(numbered.event, TurnFailed):
                error = numbered.event.error
        whole = clock() - began
        await handle.finish()
    except Exception as raised:  # noqa: BLE001 - the result of the request
        error, whole = raised, clock() - began
    return TurnResult(first_event, whole, type(error).__name__ if error else "", isinstance(error, StoreUnavailable))
