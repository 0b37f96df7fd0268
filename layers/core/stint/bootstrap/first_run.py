"""Preparation of a process for its first run, in the init phase, in which a function has a whole core.

  modules        those that a route loads when a run is submitted, and the adapter of the default model
  DynamoDB       connections with TLS for the calls that a run makes at once, and the credentials
  model server   the key, perhaps of a secret, and a connection with TLS; of Bedrock, the client

The first request meets whatever fails or is not ready in time, as if nothing had been opened. A connection that has
idled for too long, or that the server has closed, is replaced when it is taken (`http1/pool.py`). All of this belongs
to the composition, which a process drops after its restore from a snapshot (`restore.py`).
"""

import asyncio
import logging
from collections.abc import Callable

from stint.aws.dynamodb import DynamoDBClient
from stint.bootstrap.adapters import Adapters
from stint.domain.errors import StintError
from stint.models.port import connect

logger = logging.getLogger(__name__)

OPEN_SECONDS = 1.0
"""Longest time for all connections. A server in the same region needs a tenth of it."""


async def open_ahead(load: Callable[[], None], dynamodb: DynamoDBClient, adapters: Adapters, *, at_once: int) -> None:
    """Call `load`, and open connections to DynamoDB, which calls use `at_once`, and to the server of a model."""
    load()
    opened = [dynamodb.connect(at_once)]
    try:
        # Made before the time is taken, because the libraries of an adapter may take as long to load.
        opened.append(connect(*adapters.router.resolve(adapters.settings.default_model)))
    except StintError as error:
        logger.warning(f"The default model cannot be called: {error.message}")
    opening = asyncio.gather(*opened, return_exceptions=True)
    try:
        async with asyncio.timeout(OPEN_SECONDS):
            failures = [each for each in await opening if each is not None]
    except TimeoutError as error:
        failures = [error]
    for failure in failures:
        logger.info(f"A connection was not opened before the first request: {type(failure).__name__}: {failure}")
