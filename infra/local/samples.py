"""What the events of `events/` name: an agent with a client tool, a session, a complete turn and one that waits; a
toolgroup, a shield and a model; a conversation with a message."""

import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import boto3
from botocore.config import Config
from infra.local.errors import LocalCloudError
from infra.local.response_samples import store_response_samples
from infra.local.sample_ids import (
    AGENT,
    ASKING_EVENTS,
    AWAITING_STEP,
    AWAITING_TURN,
    COMPLETED_STEPS,
    COMPLETED_TURN,
    DELETED_AGENT,
    DELETED_RESPONSE,
    MODEL,
    PENDING_STEP,
    RESPONSES,
    SESSION,
    SHIELD,
    TOOLGROUP,
)

from stint.domain.errors import NotFound, StintError
from stint.domain.inference import Usage
from stint.domain.llama_stack.agents import Agent, AgentConfig
from stint.domain.llama_stack.registrations import Owner, RegisteredShield, ToolGroup
from stint.domain.llama_stack.registry import Model
from stint.domain.llama_stack.sessions import Session
from stint.domain.llama_stack.stored_turns import PendingCalls, TurnHeader, TurnRecord
from stint.domain.llama_stack.turns import TurnOverrides
from stint.domain.messages import InputMessage, UserMessage
from stint.domain.run_outcome import RunOutcome, RunStatus
from stint.domain.steps import CompletionMessage, InferenceStep, ToolExecutionStep
from stint.domain.tools import ToolCall, ToolDef, ToolParameter, ToolResponse
from stint.http.dependencies import TENANT
from stint.store import keys
from stint.store.registrations import Kind
from stint.store.response_store import ResponseStore
from stint.store.sessions import LastTurn
from stint.store.store import Store
from stint.store.table import WRITE_BATCH, Table

STARTED = datetime.fromisoformat("2025-08-31T12:00:00+00:00")
CALLS = tuple(
    ToolCall(
        call_id=f"call_{number}",
        tool_name="get_weather",
        arguments={"city": city},
        arguments_json=json.dumps({"city": city}),
    )
    for number, city in enumerate(("Oslo", "Bern"), start=1)
)
CONFIG = AgentConfig(
    model="scripted/demo",
    instructions="Answer briefly.",
    name="sample of events/",
    enable_session_persistence=True,
    client_tools=[
        ToolDef(
            name="get_weather",
            description="Tells the weather in a city.",
            parameters=[ToolParameter(name="city", parameter_type="str", description="Name of the city.")],
        )
    ],
)

# A Lambda function of docs/examples/tools, which the local cloud has unless it is told of others.
BOILING_POINT = {
    "name": "get_boiling_point",
    "description": "Tells the boiling point of a liquid.",
    "parameters": {
        "type": "object",
        "properties": {
            "liquid": {"type": "string", "description": "Name of the liquid."},
            "celsius": {"type": "boolean", "description": "Degrees Celsius (the default) or Fahrenheit."},
        },
        "required": ["liquid"],
    },
    "function": "get-boiling-point",
}
REGISTRATIONS: Mapping[Kind, ToolGroup | RegisteredShield | Model] = {
    "tool_group": ToolGroup(
        identifier=TOOLGROUP,
        provider_resource_id=TOOLGROUP,
        provider_id="lambda-function",
        args={"tools": [BOILING_POINT]},
        owner=Owner(),
    ),
    "shield": RegisteredShield(
        identifier=SHIELD,
        provider_resource_id=SHIELD,
        provider_id="deny-list",
        params={"phrases": ["the launch code"]},
        owner=Owner(),
    ),
    "model": Model(
        identifier=MODEL,
        provider_resource_id="demo",
        provider_id="scripted",
        id=MODEL,
        owned_by="scripted",
        owner=Owner(),
    ),
}


def store_samples(environment: Mapping[str, str]) -> None:
    """Store the samples where functions of this environment look for them, in place of what an earlier event left.

    Raises LocalCloudError when the store cannot be reached.
    """
    with clients(environment) as (dynamodb, s3), reported():
        table = Table(dynamodb, environment["STINT_TABLE"])
        store = Store.open(dynamodb, environment["STINT_TABLE"], lambda: s3, environment["STINT_BUCKET"])
        remove_samples(store, table)
        for agent_id in (AGENT, DELETED_AGENT):
            store.agents.create(TENANT, Agent(agent_id=agent_id, agent_config=CONFIG, created_at=STARTED))
        store.agents.mark_deleted(TENANT, DELETED_AGENT)
        store.sessions.create(
            TENANT, AGENT, Session(session_id=SESSION, session_name="sample", started_at=STARTED), None
        )
        store_turn(store, COMPLETED_TURN, "Please get_weather for Oslo", completed_records(), None)
        store_turn(store, AWAITING_TURN, "And get_weather for Bern", [awaiting_record()], pending_calls())
        for kind, document in REGISTRATIONS.items():
            store.registrations.create(TENANT, kind, document.identifier, document)
        responses = ResponseStore.open(dynamodb, environment["STINT_TABLE"], lambda: s3, environment["STINT_BUCKET"])
        store_response_samples(responses)


@contextlib.contextmanager
def clients(environment: Mapping[str, str]) -> Iterator[tuple[Any, Any]]:
    """Clients of DynamoDB and S3, as the functions would make them."""
    session = boto3.Session(
        environment.get("AWS_ACCESS_KEY_ID"),
        environment.get("AWS_SECRET_ACCESS_KEY"),
        environment.get("AWS_SESSION_TOKEN"),
        environment["AWS_REGION"],
    )
    with contextlib.ExitStack() as stack:
        yield tuple(
            stack.enter_context(contextlib.closing(client(session, name, environment))) for name in ("dynamodb", "s3")
        )


@contextlib.contextmanager
def reported() -> Iterator[None]:
    try:
        yield
    except StintError as error:
        raise LocalCloudError(f"cannot store what the event names: {error.message}") from error


def client(session: boto3.Session, service: str, environment: Mapping[str, str]) -> Any:
    everywhere = environment.get("AWS_ENDPOINT_URL")
    endpoint = environment.get(f"AWS_ENDPOINT_URL_{service.upper()}", everywhere)
    # An endpoint on this machine is not behind the shell's proxy.
    return session.client(service, endpoint_url=endpoint, config=Config(proxies={} if endpoint else None))  # type: ignore[call-overload]  # boto3's stubs know no variable names


def remove_samples(store: Store, table: Table) -> None:
    """Delete the agent with what events made below it, the seals that stay behind where a turn ran, responses, what is
    registered, by events too, and what is known of the events that begin something."""
    for agent_id in (AGENT, DELETED_AGENT):
        with contextlib.suppress(NotFound):
            store.agents.mark_deleted(TENANT, agent_id)
            store.deletion.delete_agent(TENANT, agent_id, time.monotonic() + 60)
    for kind, document in REGISTRATIONS.items():
        for identifier in (document.identifier, f"new-{document.identifier}"):
            with contextlib.suppress(NotFound):
                store.registrations.delete(TENANT, kind, identifier)
    responses = [keys.response_records(TENANT, response_id) for response_id in (*RESPONSES, DELETED_RESPONSE)]
    table.delete_many([keys.event(TENANT, event_id) for event_id in ASKING_EVENTS])
    for pk in (keys.turns(TENANT, AGENT, SESSION), keys.pending_calls(TENANT, AGENT, SESSION), *responses):
        left = [keys.Key(pk, item["sk"]) for item in table.query(pk, attributes="sk")]
        for start in range(0, len(left), WRITE_BATCH):
            table.delete_many(left[start : start + WRITE_BATCH])


def store_turn(store: Store, turn_id: str, text: str, records: list[TurnRecord], pending: PendingCalls | None) -> None:
    """Store a turn the way a running one is."""
    lease = store.session_leases.acquire(TENANT, AGENT, SESSION, turn_id, resume=False, seconds=30)
    messages: list[InputMessage] = [UserMessage(content=text)]
    header = TurnHeader(
        turn_id=turn_id, session_id=SESSION, input_messages=messages, started_at=STARTED, overrides=TurnOverrides()
    )
    store.turns.put_header(lease, header)
    if pending is not None:
        store.turns.put_pending(lease, pending)
    for index, record in enumerate(records):
        store.turns.append(lease, index, record)
    lease.last = LastTurn(turn_id, len(records))
    lease.release()


def completed_records() -> list[TurnRecord]:
    """A call of the tool, its answer, and the model's."""
    call, response = CALLS[0], "Snow, -3 degrees"
    executed = ToolExecutionStep(
        turn_id=COMPLETED_TURN,
        step_id=COMPLETED_STEPS[1],
        started_at=STARTED,
        completed_at=STARTED + timedelta(seconds=1),
        tool_calls=[call],
        tool_responses=[ToolResponse(call_id=call.call_id, tool_name=call.tool_name, content=response)],
    )
    ending = RunOutcome(
        status=RunStatus.completed,
        completed_at=STARTED + timedelta(seconds=2),
        usage=Usage(input_tokens=17, output_tokens=8, total_tokens=25),
    )
    answer = CompletionMessage(content=f"get_weather answered: {response}")
    return [
        TurnRecord(step=inference(COMPLETED_TURN, COMPLETED_STEPS[0], calling(call))),
        TurnRecord(step=executed),
        TurnRecord(step=inference(COMPLETED_TURN, COMPLETED_STEPS[2], answer), ending=ending),
    ]


def awaiting_record() -> TurnRecord:
    ending = RunOutcome(
        status=RunStatus.awaiting_input,
        completed_at=STARTED + timedelta(seconds=3),
        usage=Usage(input_tokens=20, output_tokens=3, total_tokens=23),
    )
    return TurnRecord(step=inference(AWAITING_TURN, AWAITING_STEP, calling(CALLS[1])), ending=ending)


def pending_calls() -> PendingCalls:
    return PendingCalls(turn_id=AWAITING_TURN, step_id=PENDING_STEP, started_at=STARTED, tool_calls=[CALLS[1]])


def calling(call: ToolCall) -> CompletionMessage:
    return CompletionMessage(tool_calls=[call])


def inference(turn_id: str, step_id: str, response: CompletionMessage) -> InferenceStep:
    return InferenceStep(
        turn_id=turn_id,
        step_id=step_id,
        started_at=STARTED,
        completed_at=STARTED + timedelta(seconds=1),
        model_response=response,
    )
