"""Opening connections before the first run, if the default model cannot be called."""

import logging
from typing import cast

import pytest

from stint.aws.dynamodb import DynamoDBClient
from stint.bootstrap.adapters import Adapters
from stint.bootstrap.first_run import open_ahead
from stint.settings import Settings


class Connections:
    """Counts the connections that are opened."""

    def __init__(self) -> None:
        self.opened = 0

    async def connect(self, count: int) -> None:
        self.opened += count


async def test_an_unknown_default_model_is_one_line_of_log(caplog: pytest.LogCaptureFixture) -> None:
    dynamodb, adapters = Connections(), Adapters(Settings(default_model="scripted/demo", scripted_models=False))

    with caplog.at_level(logging.INFO):
        await open_ahead(lambda: None, cast("DynamoDBClient", dynamodb), adapters, at_once=3)

    assert dynamodb.opened == 3
    [line] = caplog.records
    assert line.getMessage().startswith("The default model cannot be called: ")
    assert line.exc_info is None
