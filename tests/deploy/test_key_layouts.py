"""A stack that is updated from one key layout to the other, and back, and has sessions of both.

The functions that answer are those that the stack has deployed.
"""

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from infra.local.intrinsics import STACK
from llama_stack_client import AsyncLlamaStackClient
from tests.deploy.account import Account
from tests.deploy.callers import create_key
from tests.deploy.conftest import PARAMETERS, Update
from tests.deploy.deployed_functions import serving_deployed


@asynccontextmanager
async def connected(account: Account, python: Path, key: str) -> AsyncIterator[AsyncLlamaStackClient]:
    """Serve the API with the functions as they are deployed now, and yield a client."""
    with tempfile.TemporaryDirectory(prefix="stint-layouts-") as folder:
        async with serving_deployed(account, Path(folder), python) as url, httpx.AsyncClient(trust_env=False) as http:
            yield AsyncLlamaStackClient(base_url=url, api_key=key, http_client=http, max_retries=0)


async def run_turn(client: AsyncLlamaStackClient, agent_id: str, session_id: str, text: str) -> None:
    messages: Any = [{"role": "user", "content": text}]
    stream = await client.agents.turn.create(session_id, agent_id=agent_id, messages=messages, stream=True)
    kinds = [chunk.event.payload.event_type async for chunk in stream]
    assert kinds[-1] == "turn_complete"


async def begin(client: AsyncLlamaStackClient, agent_id: str, text: str) -> str:
    session = await client.agents.session.create(agent_id, session_name=text)
    await run_turn(client, agent_id, session.session_id, text)
    return session.session_id


def moved(account: Account) -> Mapping[str, bool]:
    """Return whether the state of each session is in its own partition, by the session's id."""
    items = account.items(account.resources(STACK)["Data/Table"].physical_id)
    records = {(item["pk"]["S"], item["sk"]["S"]): item for item in items}
    entries = {key: item for key, item in records.items() if key[0].startswith("default#session:") and "name" in item}
    return {sk: (f"{pk}:{sk}", "state") in records for pk, sk in entries if sk != "state"}


async def test_sessions_of_both_layouts_go_on_through_updates(
    stacks: Update, account: Account, project: Path, interpreter: Path
) -> None:
    key, sessions = create_key(account, STACK), dict[str, list[str]]()
    config: Any = {"model": "scripted/demo", "instructions": "", "enable_session_persistence": True}
    agent_id = ""
    # The first release after an update is compatible; see `stacks`. The last one is an update that is taken back.
    for release, layout in enumerate(("compatible", "spread", "compatible")):
        if release:
            account.deploy(STACK, project, f"{PARAMETERS} KeyLayout={layout}")
        assert account.parameters(STACK)["KeyLayout"] == layout
        async with connected(account, interpreter, key) as client:
            agent_id = agent_id or (await client.agents.create(agent_config=config)).agent_id
            for session_id, texts in sessions.items():
                texts.append(f"{layout} {release}")
                await run_turn(client, agent_id, session_id, texts[-1])
            text = f"begun {release}"
            sessions[await begin(client, agent_id, text)] = [text]

            found = {each: await client.agents.session.retrieve(each, agent_id=agent_id) for each in sessions}
        shown = {each: [turn.input_messages[0].content for turn in session.turns] for each, session in found.items()}
        assert shown == sessions

    places = moved(account)
    assert [places[each] for each in sessions] == [True, True, False]
