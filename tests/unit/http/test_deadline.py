import asyncio

import pytest
from starlette.requests import Request
from tests.clock import CLOCK

from stint.http.deadline import deadline_of


class Context:
    def __init__(self, milliseconds: int) -> None:
        self.milliseconds = milliseconds

    def get_remaining_time_in_millis(self) -> int:
        return self.milliseconds


@pytest.mark.parametrize(("milliseconds", "seconds"), [(30_000, 28), (2_000, 0), (500, 0)])
async def test_the_last_event_leaves_two_seconds_before_the_invocation_ends(milliseconds: int, seconds: int) -> None:
    request = Request({"type": "http", "aws.context": Context(milliseconds)})

    with CLOCK.stop():
        assert deadline_of(request) == asyncio.get_running_loop().time() + seconds


async def test_outside_lambda_a_request_has_lambdas_longest_time() -> None:
    with CLOCK.stop():
        assert deadline_of(Request({"type": "http"})) == asyncio.get_running_loop().time() + 898
