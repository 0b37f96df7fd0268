"""Work in threads of adapters has the context of its request: principal, meter, and keys of log lines."""

import re
from pathlib import Path
from typing import Any, NoReturn

import pytest

from stint.caller import acting_as, find_principal
from stint.domain.principals import ANONYMOUS, Principal
from stint.models.bedrock.model import ConverseCall
from stint.retrieval.embedders.bedrock import BedrockEmbeddings

SOURCES = sorted((Path(__file__).parents[2] / "layers" / "core" / "stint").rglob("*.py"))


class Watched(Exception):
    """The client was wanted."""


@pytest.fixture
def seen() -> list[Principal | None]:
    return []


@pytest.fixture
def client(seen: list[Principal | None]) -> Any:
    def make_client() -> NoReturn:
        seen.append(find_principal())
        raise Watched

    return make_client


async def test_a_call_of_bedrock_has_the_context_of_its_request(seen: list[Principal | None], client: Any) -> None:
    call = ConverseCall(client, {})
    with acting_as(ANONYMOUS), pytest.raises(Watched):
        await call.open()
    with pytest.raises(Watched):  # by the same thread
        await call.open()
    call.close()

    assert seen == [ANONYMOUS, None]


async def test_embeddings_of_bedrock_have_the_context_of_their_request(
    seen: list[Principal | None], client: Any
) -> None:
    with acting_as(ANONYMOUS), pytest.raises(Watched):
        await BedrockEmbeddings(client).embed("amazon.titan-embed-text-v2:0", ["a"])

    assert seen == [ANONYMOUS]


def test_every_executor_gets_the_context() -> None:
    calls = [call for path in SOURCES for call in re.findall(r"run_in_executor\([^)]*", path.read_text())]

    assert calls
    assert [call for call in calls if "copy_context(" not in call] == []
