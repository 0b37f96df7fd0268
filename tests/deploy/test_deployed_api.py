"""The deployed API: its routes, its authorizer and its streaming functions, taken from what was deployed.

The engine ignores routes for any method, and the wrapper of streaming functions (`engine_gaps.py`). So the local
gateway serves the routes of the deployed API, and functions run behind the local Runtime API.
"""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from infra.local.intrinsics import STACK
from llama_stack_client import AsyncLlamaStackClient, AuthenticationError
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from tests.deploy.account import Account
from tests.deploy.callers import create_key
from tests.deploy.conftest import Update
from tests.deploy.deployed_functions import serving_deployed

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url(stacks: Update, account: Account, interpreter: Path) -> AsyncIterator[str]:
    with tempfile.TemporaryDirectory(prefix="stint-deployed-") as folder:
        async with serving_deployed(account, Path(folder), interpreter) as url:
            yield url


@pytest.fixture(scope="module")
def key(stacks: Update, account: Account) -> str:
    return create_key(account, STACK)


@pytest_asyncio.fixture(loop_scope="module")
async def client(url: str, key: str) -> AsyncIterator[AsyncLlamaStackClient]:
    async with httpx.AsyncClient(trust_env=False) as http:
        yield AsyncLlamaStackClient(base_url=url, api_key=key, http_client=http, max_retries=0)


async def test_a_turn_is_streamed_to_the_first_key(client: AsyncLlamaStackClient) -> None:
    config: Any = {"model": "scripted/demo", "instructions": "", "enable_session_persistence": True}
    agent = await client.agents.create(agent_config=config)
    session = await client.agents.session.create(agent.agent_id, session_name="first")

    stream = await client.agents.turn.create(
        session.session_id, agent_id=agent.agent_id, messages=[{"role": "user", "content": "Llamas hum."}], stream=True
    )
    kinds = [chunk.event.payload.event_type async for chunk in stream]

    stored = await client.agents.session.retrieve(session.session_id, agent_id=agent.agent_id)
    assert (kinds[0], kinds[-1]) == ("turn_start", "turn_complete")
    assert kinds.count("step_progress") > 1
    assert "Llamas hum." in stored.turns[0].output_message.content


async def test_a_response_and_a_file_are_stored_with_it(url: str, key: str) -> None:
    async with AsyncOpenAI(
        base_url=f"{url}/v1", api_key=key, http_client=DefaultAsyncHttpxClient(trust_env=False)
    ) as client:
        async with client.responses.stream(model="scripted/demo", input="Llamas hum.") as stream:
            response = await stream.get_final_response()
        file = await client.files.create(file=("llamas.txt", b"Llamas hum."), purpose="assistants")

        assert (await client.responses.retrieve(response.id)).output_text == response.output_text
        assert (await client.files.content(file.id)).content == b"Llamas hum."


async def test_without_a_key_everything_but_the_health_check_is_refused(url: str) -> None:
    async with httpx.AsyncClient(base_url=url, trust_env=False) as http:
        client = AsyncLlamaStackClient(base_url=url, http_client=http, max_retries=0)
        with pytest.raises(AuthenticationError):
            await client.models.list()

        assert (await http.get("/v1/health")).json() == {"status": "OK"}
