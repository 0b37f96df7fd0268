"""Tasks for the worker function, handed over by an asynchronous invocation."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from stint.domain.tasks import AnyDeletionTask
from stint.store.failures import translated

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient


class Tasks:
    """Leaves tasks to a Lambda function: Lambda keeps them, and tries three times.

    https://docs.aws.amazon.com/lambda/latest/dg/invocation-async.html
    """

    def __init__(self, connect: "Callable[[], LambdaClient]", function: str) -> None:
        self._connect = connect
        self._function = function

    def leave(self, task: AnyDeletionTask) -> None:
        """Hand a task over. Raises StoreUnavailable when Lambda does not take it."""
        with translated():
            self._connect().invoke(
                FunctionName=self._function, InvocationType="Event", Payload=task.model_dump_json().encode()
            )
