from collections.abc import Iterator
from typing import Any

import pytest
from tests.servers import bedrock_guardrails as guardrails
from tests.servers import converse_stream as converse
from tests.servers.bedrock_guardrails import REFUSAL, GuardrailsServer
from tests.servers.scripted_http import Reply

from stint.domain.errors import InvalidRequest, ShieldFailed
from stint.domain.inference import AssistantAnswer, ModelMessage, UserInput
from stint.providers.bedrock.client import connect
from stint.shields.bedrock_guardrails import BedrockGuardrails
from stint.shields.port import Shield

ARN = "arn:aws:bedrock:eu-central-1:123456789012:guardrail/abc123"
HELLO = [UserInput("hello")]


def shield(guardrail: str = "abc123", **params: Any) -> Shield:
    return Shield("rail", "bedrock", guardrail, params)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[GuardrailsServer]:
    with GuardrailsServer() as server:
        yield server


@pytest.fixture
def server(endpoint: GuardrailsServer, monkeypatch: pytest.MonkeyPatch) -> GuardrailsServer:
    endpoint.forget()
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", endpoint.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    return endpoint


@pytest.fixture
def rail(server: GuardrailsServer) -> Iterator[BedrockGuardrails]:
    client = connect("eu-central-1", stall_timeout=20)
    yield BedrockGuardrails(lambda: client)
    client.close()


async def test_what_was_said_last_is_sent_with_its_source(rail: BedrockGuardrails, server: GuardrailsServer) -> None:
    conversation: list[ModelMessage] = [
        UserInput("hello"),
        AssistantAnswer("hi"),
        UserInput("a document"),
        UserInput("sum up"),
    ]

    assert await rail.check(shield(), conversation, "user-input") is None
    assert await rail.check(shield(), [*conversation, AssistantAnswer("fine")], "assistant-output") is None

    assert server.bodies == [
        {"source": "INPUT", "content": [{"text": {"text": "a document\n\nsum up"}}]},
        {"source": "OUTPUT", "content": [{"text": {"text": "fine"}}]},
    ]


async def test_an_intervention_is_a_violation_in_the_guardrails_words(rail: BedrockGuardrails) -> None:
    violation = await rail.check(shield(), [UserInput("a bomb")], "user-input")

    assert violation is not None
    assert violation.model_dump() == {
        "violation_level": "error",
        "user_message": REFUSAL,
        "metadata": {
            "violation_type": "contentPolicy:VIOLENCE:BLOCKED",
            "assessments": ["contentPolicy:VIOLENCE:BLOCKED"],
        },
    }


async def test_a_masked_text_is_told_without_what_was_masked(rail: BedrockGuardrails) -> None:
    violation = await rail.check(shield(), [AssistantAnswer("write to ada@example.com")], "assistant-output")

    assert violation is not None
    assert violation.user_message == "write to {EMAIL}"
    assert "ada@" not in violation.model_dump_json()


async def test_every_policy_is_summarised_and_what_only_was_noticed_is_not(
    rail: BedrockGuardrails, server: GuardrailsServer
) -> None:
    noticed = {"name": "tax", "type": "DENY", "action": "NONE"}
    topics = [{"name": "Investment", "type": "DENY", "action": "BLOCKED"}, noticed]
    words = {"customWords": [{"match": "secret", "action": "BLOCKED"}], "managedWordLists": []}
    server.script(guardrails.intervene("No.", topicPolicy={"topics": topics}, wordPolicy=words))

    violation = await rail.check(shield(), HELLO, "user-input")

    assert violation is not None
    assert violation.metadata["assessments"] == [
        "topicPolicy:Investment:BLOCKED",
        "wordPolicy:custom word:BLOCKED",
    ]


@pytest.mark.parametrize(
    ("registered", "path"),
    [
        (shield(), "/guardrail/abc123/version/DRAFT/apply"),
        (shield("abc123:7"), "/guardrail/abc123/version/7/apply"),
        (shield("abc123", guardrailVersion="2"), "/guardrail/abc123/version/2/apply"),
        (shield("abc123:7", guardrailVersion=3), "/guardrail/abc123/version/3/apply"),
        (shield(f"{ARN}:1"), f"/guardrail/{ARN.replace(':', '%3A').replace('/', '%2F')}/version/1/apply"),
    ],
)
async def test_guardrail_and_version_come_from_the_registration(
    rail: BedrockGuardrails, server: GuardrailsServer, registered: Shield, path: str
) -> None:
    rail.validate(registered)

    await rail.check(registered, HELLO, "user-input")

    assert server.requests[0].path == path


@pytest.mark.parametrize(
    "registered", [shield("Not an id"), shield("abc123:0"), shield("abc123", guardrailVersion="x")]
)
async def test_a_wrong_registration_is_named_and_fails_a_check(rail: BedrockGuardrails, registered: Shield) -> None:
    with pytest.raises(InvalidRequest, match="'rail'"):
        rail.validate(registered)
    with pytest.raises(ShieldFailed, match="'rail'"):
        await rail.check(registered, HELLO, "user-input")


async def test_a_long_text_is_checked_in_pieces_that_overlap(rail: BedrockGuardrails, server: GuardrailsServer) -> None:
    long = "x" * 19_998 + "bomb" + "y" * 30_000

    assert await rail.check(shield(), [UserInput(long.replace("bomb", "book"))], "user-input") is None
    pieces = [body["content"][0]["text"]["text"] for body in server.bodies]
    assert await rail.check(shield(), [UserInput(long)], "user-input") is not None

    assert [len(piece) for piece in pieces] == [20_000, 20_000, 11_002]
    assert pieces[0] + pieces[1][500:] + pieces[2][500:] == long.replace("bomb", "book")


@pytest.mark.parametrize("text", ["", " \n"])
async def test_nothing_said_is_nothing_to_check(rail: BedrockGuardrails, server: GuardrailsServer, text: str) -> None:
    assert await rail.check(shield(), [AssistantAnswer(text)], "assistant-output") is None
    assert server.requests == []


@pytest.mark.parametrize(
    ("status", "code", "hint", "requests"),
    [
        (403, "AccessDeniedException", "bedrock:ApplyGuardrail", 1),
        (404, "ResourceNotFoundException", "the region", 1),
        (400, "ValidationException", "no such thing", 1),
        (429, "ThrottlingException", "try again later", 3),
        (500, "InternalServerException", "no such thing", 3),
    ],
)
async def test_a_refusal_is_no_pass(
    rail: BedrockGuardrails,
    server: GuardrailsServer,
    status: int,
    code: str,
    hint: str,
    requests: int,
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0.0)
    server.script(*[converse.error(status, code, "no such thing")] * requests)

    with pytest.raises(ShieldFailed) as caught:
        await rail.check(shield(), HELLO, "user-input")

    assert f"Shield 'rail' returned no verdict: Bedrock answered {code}" in caught.value.message
    assert hint in caught.value.message
    assert len(server.requests) == requests


async def test_silence_and_a_broken_connection_are_no_pass(
    rail: BedrockGuardrails, server: GuardrailsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0.0)
    server.script(*[Reply(ending="hang")] * 3)
    impatient = BedrockGuardrails(lambda: connect("eu-central-1", stall_timeout=0.3))
    with pytest.raises(ShieldFailed, match="sent nothing"):
        await impatient.check(shield(), HELLO, "user-input")

    server.script(*[Reply(status=0)] * 3)
    with pytest.raises(ShieldFailed, match="cannot be called"):
        await rail.check(shield(), HELLO, "user-input")


async def test_a_guardrail_without_words_of_its_own_gets_the_usual_ones(
    rail: BedrockGuardrails, server: GuardrailsServer
) -> None:
    server.script(guardrails.intervene(""))

    violation = await rail.check(shield(), HELLO, "user-input")

    assert violation is not None
    assert violation.user_message == "I can't answer that. Can I help with something else?"
    assert violation.metadata["violation_type"] == "guardrail"


async def test_an_unknown_action_is_no_pass(rail: BedrockGuardrails, server: GuardrailsServer) -> None:
    server.script(guardrails.document({"action": "SHRUG", "usage": guardrails.USAGE, "outputs": [], "assessments": []}))

    with pytest.raises(ShieldFailed, match="SHRUG"):
        await rail.check(shield(), HELLO, "user-input")


async def test_missing_credentials_are_said(server: GuardrailsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")

    with pytest.raises(ShieldFailed, match="configure them"):
        await BedrockGuardrails(lambda: connect("eu-central-1")).check(shield(), HELLO, "user-input")
