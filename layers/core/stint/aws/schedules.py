"""Schedules of EventBridge Scheduler, which send tasks to one SQS queue.

A schedule has the state that it got when it was created. A one-time schedule is deleted by Scheduler after it has sent
its task.

https://docs.aws.amazon.com/scheduler/latest/APIReference/API_CreateSchedule.html
https://docs.aws.amazon.com/scheduler/latest/APIReference/API_DeleteSchedule.html
"""

import json
from urllib.parse import quote

from stint.aws.credentials import Credentials, CredentialsSource
from stint.aws.endpoints import service_endpoint
from stint.aws.environment import AwsEnvironment
from stint.aws.errors import NoResponse, ServiceError
from stint.aws.retries import is_throttled, is_transient
from stint.aws.service_client import USER_AGENT, Call, ClientOptions, ServiceClient
from stint.aws.signature import Target, amz_date, authorize
from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest, StintError, StoreUnavailable
from stint.domain.schedules import Schedule
from stint.http1.parser import HttpResponse

MISSING, EXISTS, INVALID = "ResourceNotFoundException", "ConflictException", "ValidationException"
"""The codes of a schedule or a group that does not exist, of one that exists, and of a value that is refused."""


@dataclass(frozen=True, slots=True)
class ScheduleTarget:
    """Where the schedules of a stack are, and what they do."""

    group: str
    """The name of the group."""
    role_arn: str
    """The role with which Scheduler sends the tasks."""
    queue_arn: str


class EventBridgeSchedules(ServiceClient[None]):
    """The schedules of one group, for any number of event loops and threads."""

    def __init__(
        self,
        environment: AwsEnvironment,
        target: ScheduleTarget,
        credentials: CredentialsSource | None = None,
        options: ClientOptions | None = None,
    ) -> None:
        origin = service_endpoint(environment, "scheduler")
        super().__init__(environment, origin, credentials, options or ClientOptions())
        self._target = target

    async def create(self, schedule: Schedule) -> None:
        """Create a schedule; one that exists by this name is left as it is.

        Raises:
            InvalidRequest: Scheduler refuses the expression or the time zone, which `param` names.
            StoreUnavailable: it may have been created or not.
        """
        try:
            await self._call(Call(_path_of(schedule.name), self._encode(schedule)))
        except (ServiceError, NoResponse) as error:
            if _code_of(error) != EXISTS:
                raise _refusal(error) from error

    async def delete(self, name: str) -> None:
        """Delete a schedule, if it exists. Raises StoreUnavailable."""
        try:
            await self._call(Call(_path_of(name), b""))
        except (ServiceError, NoResponse) as error:
            if _code_of(error) != MISSING:
                raise _refusal(error) from error

    def _encode(self, schedule: Schedule) -> bytes:
        document = {
            "GroupName": self._target.group,
            "ScheduleExpression": schedule.expression,
            "ScheduleExpressionTimezone": schedule.timezone,
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "ActionAfterCompletion": "DELETE",
            "Target": {
                "Arn": self._target.queue_arn,
                "RoleArn": self._target.role_arn,
                "Input": schedule.payload,
            },
        }
        return json.dumps(document).encode()

    def _encode_head(self, call: Call, credentials: Credentials) -> bytes:
        call.signed_at = self._signature_clock()
        headers = {"content-type": "application/json", "host": self._host, "x-amz-date": amz_date(call.signed_at)}
        if credentials.token:
            headers["x-amz-security-token"] = credentials.token
        group = f"groupName={quote(self._target.group, safe='')}"
        target = Target("POST", call.operation) if call.body else Target("DELETE", call.operation, group)
        authorization = authorize(
            credentials, headers, call.body, region=self._region, service="scheduler", target=target
        )
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        return (
            f"{target.method} {self._connector.target[:-1]}{target.text} HTTP/1.1\r\n{self._connector.headers}{lines}"
            f"user-agent: {USER_AGENT}\r\nauthorization: {authorization}\r\namz-sdk-invocation-id: {call.id}\r\n"
            f"content-length: {len(call.body)}\r\n\r\n"
        ).encode("latin-1")

    def _decode(self, response: HttpResponse) -> None:
        if response.status == 200:
            return
        code = response.headers.get("x-amzn-errortype", "").partition(":")[0]
        raise ServiceError(code, response.status, _message_of(response.body), headers=response.headers)


def _path_of(name: str) -> str:
    return f"/schedules/{quote(name, safe='')}"


def _message_of(body: bytes) -> str:
    """Return the message of an error; empty for a damaged one."""
    try:
        document = json.loads(body)
    except ValueError:
        return ""
    return str(document.get("Message") or document.get("message") or "") if isinstance(document, dict) else ""


def _code_of(error: ServiceError | NoResponse) -> str:
    return error.code if isinstance(error, ServiceError) else ""


def _refusal(error: ServiceError | NoResponse) -> StintError:
    """Return the error of the domain."""
    if isinstance(error, NoResponse):
        return StoreUnavailable("The scheduler does not respond. Try again.", unsure=error.unsure)
    # A conflict here is another change of the same schedule at the same time.
    if error.code == EXISTS or is_throttled(error.code, error.status) or is_transient(error.code, error.status):
        return StoreUnavailable("The scheduler is overloaded or down. Try again.", unsure=error.unsure)
    message = error.message.lower()
    # The other values are the server's own, such as a role that Scheduler may not assume yet.
    if error.code != INVALID or ("expression" not in message and "zone" not in message):
        return StintError(f"The scheduler refused the request ({error.code or error.status}).")
    param = "timezone" if "zone" in message else "expression"
    return InvalidRequest(f"The scheduler refused the {param}: {error.message}", param=param)
