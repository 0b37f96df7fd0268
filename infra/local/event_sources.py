"""Event sources of functions: SQS queues, EventBridge rules, and schedules, which send to a queue.

The engine has neither Lambda's pollers nor the functions. So this process polls the queues, and each rule sends its
events to a queue of its own.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from infra.local.cloud import Cloud
from infra.local.engine import RunningEngine
from infra.local.functions import Functions, PayloadTooLarge, Throttled
from infra.local.intrinsics import STACK
from infra.local.invocation import Invocation
from infra.local.queue_event import Message, failed_messages, queue_event
from infra.local.queues import Deliver, Log, Poller, Queue
from infra.local.schedules import serving_schedules
from infra.local.sources import QueueSource, RuleSource, queue_sources, rule_sources
from infra.local.system import System

_THROTTLED_SECONDS = 1.0


@contextlib.asynccontextmanager
async def serving_sources(cloud: Cloud, log: Log, visibility: int | None = None) -> AsyncIterator[None]:
    """Invoke the functions of a running cloud for messages and events; `log` gets (function, line) of failures.

    `visibility`, in seconds, replaces the visibility timeout of the queues. Only one cloud at a time should serve the
    sources of an engine. Raises LocalCloudError for a source that the local cloud cannot serve.
    """
    queues, rules = queue_sources(cloud.system), rule_sources(cloud.system)
    for function in (*(source.function for source in queues), *(rule.function for rule in rules)):
        cloud.functions.require(function)
    pollers: list[Poller] = []
    await asyncio.to_thread(create_buses, cloud.system, cloud.engine)
    try:
        for mapping in queues:
            queue = await asyncio.to_thread(cloud.queues.open, mapping.queue_arn, visibility)
            most = cloud.functions.concurrency
            concurrency = min(mapping.concurrency or most, most)
            deliver = function_handler(cloud.functions, mapping, log)
            pollers.append(Poller(queue, deliver, batch=mapping.batch, concurrency=concurrency))
        for rule in rules:
            queue = await asyncio.to_thread(create_rule, cloud, rule)
            pollers.append(Poller(queue, rule_handler(cloud.functions, rule), batch=10, concurrency=1))
        async with serving_schedules(cloud, log):
            yield
    finally:
        await asyncio.gather(*(poller.stop() for poller in pollers))


def function_handler(functions: Functions, source: QueueSource, log: Log) -> Deliver:
    """Return a handler that runs the function for messages, as an event source mapping does."""

    async def deliver(messages: list[Message]) -> list[Message]:
        try:
            invocation = await invoke_with_retries(functions, source.function, queue_event(messages, source.queue_arn))
        except PayloadTooLarge:
            return messages
        answer = await invocation.read()
        if invocation.error:
            log(source.function, f"Messages of {source.name} failed: {invocation.error.message}")
            return messages
        return failed_messages(answer, messages) if source.partial else []

    return deliver


async def invoke_with_retries(functions: Functions, name: str, event: bytes) -> Invocation:
    """Run a function, and retry while it is throttled."""
    while True:
        try:
            return await functions.invoke(name, event, stream=False)
        except Throttled:
            await asyncio.sleep(_THROTTLED_SECONDS)


def rule_handler(functions: Functions, source: RuleSource) -> Deliver:
    """Return a handler that invokes the function asynchronously with a rule's events."""

    async def deliver(messages: list[Message]) -> list[Message]:
        for message in messages:
            await functions.invoke_async(source.function, message["Body"].encode())
        return []

    return deliver


def create_buses(system: System, engine: RunningEngine) -> None:
    """Create the event buses of the template in the engine, unless they exist."""
    buses = system.resolved("AWS::Events::EventBus")
    events = engine.client("events")
    try:
        for bus in buses.values():
            with contextlib.suppress(events.exceptions.ResourceAlreadyExistsException):
                events.create_event_bus(Name=bus["Name"])
    finally:
        events.close()


def create_rule(cloud: Cloud, rule: RuleSource) -> Queue:
    """Create the rule in the engine with a queue as target. The engine applies the pattern and the transformer."""
    events, name = cloud.engine.client("events"), f"{STACK}-{rule.bus}-{rule.name}"
    try:
        queue = cloud.queues.make(name)
        target: dict[str, Any] = {"Id": "queue", "Arn": queue.arn, **rule.shape}
        events.put_rule(Name=name, EventBusName=rule.bus, EventPattern=json.dumps(rule.pattern), State="ENABLED")
        events.put_targets(Rule=name, EventBusName=rule.bus, Targets=[target])
    finally:
        events.close()
    return queue
