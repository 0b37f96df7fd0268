"""Process that runs a turn whose model never ends, for tests that kill it. Arguments: table, bucket, and ids."""

import asyncio
import sys

from tests.script_model import called, script, shape
from tests.services.turn_fixture import TurnFixture

from stint.store.clients import make_bucket, make_dynamodb
from stint.store.store import Store


async def main(table: str, bucket: str, tenant: str, agent_id: str, session_id: str) -> None:
    model = script(called("nosuch", text="So"), [asyncio.Event()])
    turn_fixture = TurnFixture(Store(make_dynamodb(), table, make_bucket(bucket)), tenant, model)
    turn_fixture.agent_id, turn_fixture.session_id = agent_id, session_id
    turn = await turn_fixture.start("one")
    print(turn.turn_id, flush=True)
    async for event in turn_fixture.turns.run(turn):
        print(*shape([event]), flush=True)


asyncio.run(main(*sys.argv[1:]))
