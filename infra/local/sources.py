"""Event sources of functions in a translated template: SQS queues and EventBridge rules.

They are read strictly: a setting that the local cloud does not support is an error at its start. An ignored filter or
transformation would let a function get other events here than when it is deployed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infra.local.errors import LocalCloudError
from infra.local.invocation import Retries
from infra.local.system import System

_FUNCTION_ARN = re.compile(r":function:(?P<name>[^:/]+)$")
_PARTIAL = "ReportBatchItemFailures"
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-parameters.html
_BATCH = 10
_MAPPING = {"BatchSize", "Enabled", "EventSourceArn", "FunctionName", "FunctionResponseTypes", "ScalingConfig", "Tags"}
_RULE = {"Description", "EventBusName", "EventPattern", "Name", "State", "Tags", "Targets"}
_SHAPE = {"Input", "InputPath", "InputTransformer"}
# The queue of a rule keeps undelivered events here.
_TARGET = _SHAPE | {"Arn", "DeadLetterConfig", "Id"}


@dataclass(frozen=True)
class QueueSource:
    """A queue that triggers a function, with at most `batch` messages per event and `concurrency` events at a time.

    If `partial` is true, the function's response names the messages that failed.
    """

    name: str
    function: str
    queue_arn: str
    batch: int
    concurrency: int | None
    partial: bool


@dataclass(frozen=True)
class RuleSource:
    """A rule of a bus whose target is a function; `shape` has the target's input settings (Input, ...)."""

    name: str
    function: str
    bus: str
    pattern: Mapping[str, Any]
    shape: Mapping[str, Any]


def queue_sources(system: System) -> list[QueueSource]:
    """Return the event source mappings. Raises LocalCloudError if one is not of a queue or has an unknown setting."""
    found = []
    for name, properties in system.resolved("AWS::Lambda::EventSourceMapping").items():
        require_known(name, properties, _MAPPING)
        if ":sqs:" not in properties["EventSourceArn"]:
            raise LocalCloudError(f"{name}: the local cloud has no event source {properties['EventSourceArn']}")
        if not properties.get("Enabled", True):
            continue
        limit = properties.get("ScalingConfig", {}).get("MaximumConcurrency")
        found.append(
            QueueSource(
                name=name,
                function=properties["FunctionName"],
                queue_arn=properties["EventSourceArn"],
                batch=int(properties.get("BatchSize", _BATCH)),
                concurrency=None if limit is None else int(limit),
                partial=_PARTIAL in properties.get("FunctionResponseTypes", []),
            )
        )
    return found


def rule_sources(system: System) -> list[RuleSource]:
    """Return the rules, whose targets are functions. Raises LocalCloudError for another target or unknown setting."""
    return [
        rule_source(f"{name}-{number}", properties, target)
        for name, properties in system.resolved("AWS::Events::Rule").items()
        if properties.get("State", "ENABLED") != "DISABLED"
        for number, target in enumerate(properties["Targets"], start=1)
    ]


def rule_source(name: str, properties: Mapping[str, Any], target: Mapping[str, Any]) -> RuleSource:
    require_known(name, properties, _RULE)
    require_known(f"{name}.Targets", target, _TARGET)
    function = _FUNCTION_ARN.search(target["Arn"])
    if function is None:
        raise LocalCloudError(f"{name}: the local cloud has no target {target['Arn']}")
    return RuleSource(
        name=name,
        function=function["name"],
        bus=properties.get("EventBusName", "default"),
        pattern=properties["EventPattern"],
        shape={key: target[key] for key in _SHAPE if key in target},
    )


def retries(system: System) -> dict[str, Retries]:
    """Return the retries of asynchronous events by function name."""
    found = {}
    for properties in system.resolved("AWS::Lambda::EventInvokeConfig").values():
        destination = properties.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination", "")
        if destination and ":sqs:" not in destination:
            raise LocalCloudError(f"{properties['FunctionName']}: the local cloud has no destination {destination}")
        found[properties["FunctionName"]] = Retries(int(properties.get("MaximumRetryAttempts", 2)), destination)
    return found


def require_known(name: str, properties: Mapping[str, Any], known: set[str]) -> None:
    """Raise LocalCloudError if there is a setting that the local cloud does not support."""
    if unknown := sorted(set(properties) - known):
        raise LocalCloudError(f"{name}: the local cloud does not support {', '.join(unknown)}")
