"""Schedules of EventBridge Scheduler: requests as botocore makes them, errors and retries, over real connections."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from unittest import mock

import botocore.auth
import botocore.session
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from tests.unit.aws.dynamodb_server import DynamoDBServer, Pauses, Request, reply

from stint.aws.environment import AwsEnvironment
from stint.aws.schedules import EventBridgeSchedules, ScheduleTarget
from stint.aws.service_client import ClientOptions
from stint.domain.errors import InvalidRequest, StintError, StoreUnavailable
from stint.domain.schedules import Schedule

ROLE, QUEUE = "arn:aws:iam::123456789012:role/sender", "arn:aws:sqs:eu-west-1:123456789012:work"
TARGET = ScheduleTarget("stint-automations", ROLE, QUEUE)
DAILY = Schedule("auto_1.0a1b2c3d", "cron(0 9 * * ? *)", "Europe/Berlin", '{"automation_id": "auto_1"}')
SIGNED = ["content-type", "host", "x-amz-date", "x-amz-security-token"]


def refused(status: int, code: str, message: str = "None.") -> bytes:
    body = json.dumps({"Message": message}).encode()
    return reply(status, body, **{"x-amzn-ErrorType": f"{code}:http://internal.amazon.com/coral/"})


@pytest.fixture
async def schedules(server: DynamoDBServer, pauses: Pauses) -> AsyncIterator[EventBridgeSchedules]:
    schedules = make_schedules(server, pauses, TARGET)
    yield schedules
    await schedules.close()


def make_schedules(server: DynamoDBServer, pauses: Pauses, target: ScheduleTarget) -> EventBridgeSchedules:
    variables = {"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    variables |= {"AWS_SESSION_TOKEN": "c", "AWS_ENDPOINT_URL_SCHEDULER": server.url}
    return EventBridgeSchedules(AwsEnvironment(variables), target, options=ClientOptions(sleep=pauses))


def call_botocore(server: DynamoDBServer) -> None:
    client: Any = botocore.session.get_session().create_client(
        "scheduler",
        region_name="eu-west-1",
        endpoint_url=server.url,
        aws_access_key_id="a",
        aws_secret_access_key="b",
        aws_session_token="c",
        config=Config(retries={"total_max_attempts": 1}, proxies={}),
    )
    client.create_schedule(
        Name=DAILY.name,
        GroupName=TARGET.group,
        ScheduleExpression=DAILY.expression,
        ScheduleExpressionTimezone=DAILY.timezone,
        FlexibleTimeWindow={"Mode": "OFF"},
        ActionAfterCompletion="DELETE",
        Target={"Arn": QUEUE, "RoleArn": ROLE, "Input": DAILY.payload},
    )
    client.delete_schedule(Name=DAILY.name, GroupName=TARGET.group)
    client.close()


def sign_again(server: DynamoDBServer, request: Request) -> str:
    """Return the header Authorization that botocore makes for a request."""
    method, path, _ = request.line.split()
    sent = {name: request.headers[name] for name in SIGNED if name.startswith("content")}
    again = AWSRequest(method, f"{server.url}{path}", headers=sent, data=request.body)
    moment = datetime.strptime(request.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    with mock.patch.object(botocore.auth, "get_current_datetime", return_value=moment):
        SigV4Auth(Credentials("a", "b", "c"), "scheduler", "eu-west-1").add_auth(again)
    return str(again.headers["Authorization"])


async def test_the_requests_are_those_of_botocore(server: DynamoDBServer, schedules: EventBridgeSchedules) -> None:
    await schedules.create(DAILY)
    await schedules.delete(DAILY.name)
    await asyncio.to_thread(call_botocore, server)

    created, deleted, expected_created, expected_deleted = server.requests
    # Names are never used twice, so that a repeated request needs no token to be recognized.
    token = json.loads(expected_created.body)["ClientToken"]
    assert json.loads(created.body) | {"ClientToken": token} == json.loads(expected_created.body)
    assert created.line == expected_created.line
    assert deleted.line.split() == [re.sub("&clientToken=[^&]+", "", part) for part in expected_deleted.line.split()]
    assert deleted.body == b""
    assert [each.headers["authorization"] for each in (created, deleted)] == [
        sign_again(server, created),
        sign_again(server, deleted),
    ]


async def test_an_existing_schedule_is_created_and_a_missing_one_deleted(
    server: DynamoDBServer, schedules: EventBridgeSchedules
) -> None:
    server.script(refused(409, "ConflictException"), refused(404, "ResourceNotFoundException"))

    await schedules.create(DAILY)
    await schedules.delete(DAILY.name)

    assert len(server.requests) == 2


async def test_a_creation_whose_answer_is_lost_is_repeated_and_found(
    server: DynamoDBServer, schedules: EventBridgeSchedules
) -> None:
    server.script((None,), refused(409, "ConflictException"))

    await schedules.create(DAILY)

    assert len(server.requests) == 2
    assert server.requests[0].body == server.requests[1].body


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("Invalid Schedule Expression cron(0 9 * * ? *).", "expression"),
        ("Invalid Schedule Expression Timezone Mars/Olympus.", "timezone"),
    ],
)
async def test_a_refused_value_of_the_caller_is_named(
    server: DynamoDBServer, schedules: EventBridgeSchedules, message: str, param: str
) -> None:
    server.script(refused(400, "ValidationException", message))

    with pytest.raises(InvalidRequest) as raised:
        await schedules.create(DAILY)

    assert (raised.value.param, message in raised.value.message) == (param, True)


@pytest.mark.parametrize(
    "answer",
    [
        refused(400, "ValidationException", "The execution role must allow AWS EventBridge Scheduler to assume it."),
        refused(403, "AccessDeniedException"),
        refused(402, "ServiceQuotaExceededException"),
        refused(404, "ResourceNotFoundException"),  # the group
        reply(400, b"<html>"),
        reply(400, b"[]"),
    ],
)
async def test_what_the_caller_cannot_change_is_an_error_of_the_server_and_not_repeated(
    server: DynamoDBServer, schedules: EventBridgeSchedules, answer: bytes
) -> None:
    server.script(answer)

    with pytest.raises(StintError) as raised:
        await schedules.create(DAILY)

    assert (type(raised.value), raised.value.code, len(server.requests)) == (StintError, "server_error", 1)


@pytest.mark.parametrize(
    ("answer", "attempts"),
    [
        ((refused(500, "InternalServerException"),), 3),
        ((refused(429, "ThrottlingException"),), 3),
        ((reply(503, b""),), 3),
        ((None,), 3),
    ],
)
async def test_a_failure_that_may_pass_is_repeated_and_then_told(
    server: DynamoDBServer, schedules: EventBridgeSchedules, answer: tuple[bytes | None, ...], attempts: int
) -> None:
    for act in (schedules.create(DAILY), schedules.delete(DAILY.name)):
        server.requests.clear()
        server.script(*attempts * [answer])

        with pytest.raises(StoreUnavailable):
            await act

        assert len(server.requests) == attempts


async def test_a_deletion_during_another_change_may_be_repeated(
    server: DynamoDBServer, schedules: EventBridgeSchedules
) -> None:
    server.script(refused(409, "ConflictException"))

    with pytest.raises(StoreUnavailable):
        await schedules.delete(DAILY.name)


async def test_a_name_stays_one_part_of_the_path(server: DynamoDBServer, schedules: EventBridgeSchedules) -> None:
    await schedules.delete("../x?groupName=other\r\nhost: evil")

    assert server.requests[0].line == (
        "DELETE /schedules/..%2Fx%3FgroupName%3Dother%0D%0Ahost%3A%20evil?groupName=stint-automations HTTP/1.1"
    )
