import asyncio
import base64
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pytest

from stint.domain.content import ImageContentItem, ImageSource, TextContentItem
from stint.domain.errors import InvalidRequest, StintError, ToolUnauthorized, ToolUnavailable
from stint.domain.inference import ToolSignature
from stint.domain.known_secrets import begin_request, redact, redactor_of_models_text, remember
from stint.domain.redaction import MOST_KNOWN
from stint.tools.outcomes import data_url
from stint.tools.port import ATTACHMENTS, Invocation, Toolgroup, ToolOutcome
from stint.tools.redaction import IN_THREAD, RedactedProvider, RedactedProviders, secrets_of, warn_of_short_secrets

URI = "https://tools.example/mcp"
KEY = "sk-1234567890"


@pytest.fixture(autouse=True)
def request_of_its_own() -> Iterator[None]:
    begin_request()
    yield
    begin_request()


@dataclass
class Parrot:
    """A provider that repeats what it was told to, or fails with it."""

    says: Any = ""
    error: Exception | None = None
    tools: list[ToolSignature] = field(default_factory=list)

    async def check(self, toolgroup: Toolgroup, /) -> None:
        self.fail()

    def known_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature] | None:
        self.fail()
        return self.tools

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        self.fail()
        return self.tools

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        self.fail()
        return self.says if isinstance(self.says, ToolOutcome) else ToolOutcome(self.says)

    def fail(self) -> None:
        if self.error is not None:
            raise self.error


def group(uri: str | None = None, **config: Any) -> Toolgroup:
    return Toolgroup("g", "p", uri, config)


async def said(parrot: Parrot, toolgroup: Toolgroup, invocation: Invocation | None = None) -> ToolOutcome:
    return await RedactedProvider(parrot).invoke(toolgroup, invocation or Invocation("t", {}, "c"))


PROVIDER_DATA: list[tuple[dict[str, Any], set[str]]] = [
    ({"mcp_headers": {URI: {"Authorization": "Bearer abcdefgh"}}}, {"abcdefgh"}),
    ({"mcp_headers": {URI: ["X-Key: ijklmnop"]}}, {"ijklmnop"}),
    ({"mcp_headers": {f"{URI}?api_key={KEY}": {}}}, {KEY}),
    ({"http_headers": {"https://x.example": {"X-Key": "ijklmnop", "Accept": "text/html, */*"}}}, {"ijklmnop"}),
    ({"tavily_search_api_key": "tvly-12345"}, {"tvly-12345"}),
    ({"mcp_headers": {URI: {"X-Tenant": "acme"}}}, set()),
    ({"user": "somebody-long"}, set()),
    ({"mcp_headers": "malformed", "http_headers": {"https://x.example": 5}}, set()),
]
LOGIN = base64.b64encode(b"ann:open-sesame").decode()
CONFIGS: list[tuple[dict[str, Any], set[str]]] = [
    ({"api_key": KEY}, {KEY}),
    ({"tools": [{"headers": {"Authorization": f"Bearer {KEY}", "Accept": "text/plain"}}]}, {KEY}),
    ({"tools": [{"headers": {"Authorization": "Bearer {token}"}}]}, set()),
    ({"tools": [{"headers": {"X-Call": f"{KEY} {{id}}"}}]}, {KEY}),
    ({"tools": [{"headers": {"Authorization": f"Basic {LOGIN}"}}]}, {LOGIN, "ann:open-sesame"}),
    ({"tools": [{"url": f"https://x.example/{{id}}?appid={KEY}&q={{q}}"}]}, {KEY}),
    ({"tools": [{"url": f"https://x.example/token/{KEY}/send"}]}, {KEY}),
    ({"tools": [{"url": "https://hooks.example/services/T0/B0/Xa1Xa1Xa1Xa1Xa1Xa1Xa1Xa"}]}, {"Xa1Xa1Xa1Xa1Xa1Xa1Xa1Xa"}),
    ({"tools": [{"url": "https://ann:open%2Dsesame@x.example/"}]}, {"ann:open-sesame", "open-sesame"}),
    ({"tools": [{"body": {"auth": {"inner": [KEY]}, "title": "{title}"}}]}, {KEY}),
    ({"tools": [{"body": {"pin": 1234567890}}]}, {"1234567890"}),
    ({"tools": [{"body": f"api_key={KEY}&q={{q}}"}]}, {KEY}),
    ({"tools": [{"body": f'{{"token": "{KEY}", "n": 1}}'}]}, {KEY}),
    ({"tools": [{"body": f'{{"token": "{KEY}", "q": {{q}}}}'}]}, {KEY}),
    (
        {"tools": [{"params": {"anything": "ghp_abcdefghijklmnopqrstuvwxyz0123"}}]},
        {"ghp_abcdefghijklmnopqrstuvwxyz0123"},
    ),
    ({"tools": [{"name": "searchDocumentsOfProject2", "body": {"project_id": "5f1d7f3a9b2c4d6e8f0a1b2c"}}]}, set()),
    ({"max_tokens": 12345678, "description": "token: the token of the page"}, set()),
]
ENDPOINTS = [
    (f"https://x.example/mcp?api_key={KEY}", {KEY}),
    (f"https://x.example/s/{KEY}/mcp", {KEY}),
    ("https://x.example/s/AbCd1234/mcp", {"AbCd1234"}),
    ("https://x.example/a-secret-path/mcp", {"a-secret-path"}),
    ("https://x.example/api/documents/search", set()),
]


@pytest.mark.parametrize(("provider_data", "secrets"), PROVIDER_DATA)
def test_the_callers_credentials_are_what_is_named_so_and_headers_that_are_not_public(
    provider_data: dict[str, Any], secrets: set[str]
) -> None:
    assert secrets_of(group(), provider_data) == secrets


@pytest.mark.parametrize(("config", "secrets"), CONFIGS)
def test_the_credentials_of_a_registration_are_what_its_answers_mask(config: dict[str, Any], secrets: set[str]) -> None:
    assert secrets <= secrets_of(group(**config))
    assert {each for each in secrets_of(group(**config)) if each not in secrets} <= {LOGIN, "open-sesame"}


@pytest.mark.parametrize(("uri", "secrets"), ENDPOINTS)
def test_the_credentials_of_an_endpoint_are_in_its_query_and_its_path(uri: str, secrets: set[str]) -> None:
    assert secrets_of(group(uri)) == secrets


async def test_every_text_of_an_outcome_is_redacted_and_images_stay() -> None:
    image = ImageContentItem(image=ImageSource(data="abcdefgh"))
    metadata = {"structured_content": {"headers": [{"abcdefgh": "Bearer abcdefgh"}], "n": 1}}
    outcome = ToolOutcome([TextContentItem(text="sent abcdefgh"), image], metadata, error=True)

    redacted = await said(Parrot(outcome), group(token="abcdefgh"))

    assert redacted.content == [TextContentItem(text="sent ***"), image]
    assert redacted.metadata == {"structured_content": {"headers": [{"***": "Bearer ***"}], "n": 1}}
    assert redacted.error


@pytest.mark.parametrize("key", [KEY, "schl\u00fcssel-wort"])
async def test_files_and_images_that_hold_a_credential_are_written_without_it(key: str) -> None:
    data = b"\xff\xfe key=" + key.encode() + b"; \x00"
    file = {"content": {"uri": data_url(data, "application/octet-stream")}, "mime_type": "application/octet-stream"}
    link = {"content": {"uri": f"https://x.example/?q={quote(key)}"}, "mime_type": "text/plain"}
    image = ImageContentItem(image=ImageSource(data=base64.b64encode(data).decode()))

    outcome = await said(Parrot(ToolOutcome([image], {ATTACHMENTS: [file, link]})), group(api_key=key))
    begin_request()
    other = await said(Parrot(ToolOutcome([image], {ATTACHMENTS: [file, link]})), group(api_key="another-key"))

    redacted = b"\xff\xfe key=***; \x00"
    first, second = outcome.metadata[ATTACHMENTS]
    assert first["content"]["uri"] == data_url(redacted, "application/octet-stream")
    assert second["content"]["uri"] == "https://x.example/?q=***"
    assert isinstance(outcome.content, list)
    assert outcome.content == [ImageContentItem(image=ImageSource(data=base64.b64encode(redacted).decode()))]
    assert other.metadata == {ATTACHMENTS: [file, link]}
    assert other.content == [image]


COMPOSED = [
    ("Cookie", "session=cookieVALUEabc123", "cookieVALUEabc123"),
    ("Cookie", "theme=darkmode-for-all; session=cookieVALUEabc123; path=/", "cookieVALUEabc123"),
    ("Authorization", "Token token=cookieVALUEabc123", "cookieVALUEabc123"),
    ("Authorization", 'Token token="cookieVALUEabc123", nonce="def"', "cookieVALUEabc123"),
    ("X-Key", "user:cookieVALUEabc123", "cookieVALUEabc123"),
    ("X-Keys", "cookieVALUEabc123,other", "cookieVALUEabc123"),
    (
        "Authorization",
        'Digest username="ann", realm="tokens", response="6629fae49393a05397450978"',
        "6629fae49393a05397450978",
    ),
    (
        "Authorization",
        "AWS4-HMAC-SHA256 Credential=AKIAX/2026/s3, SignedHeaders=content-type;host, Signature=fe5f80f77d5fa3beca038a",
        "fe5f80f77d5fa3beca038a",
    ),
]


@pytest.mark.parametrize(("header", "value", "secret"), COMPOSED)
async def test_a_credential_within_the_value_of_a_header_is_replaced_alone_and_words_are_not(
    header: str, value: str, secret: str
) -> None:
    words = "max tokens, session, Signature, darkmode-for-all, content-type, Credential, username"

    outcome = await said(Parrot(f"{words}: {secret}."), group(tools=[{"headers": {header: value}}]))

    assert outcome.content == f"{words}: ***."


async def test_a_file_that_is_base64_in_lines_is_read() -> None:
    data = base64.encodebytes(b"x" * 100 + KEY.encode() + b"y" * 100).decode()
    image = ImageContentItem(image=ImageSource(data=data))
    file = {"content": {"uri": f"data:image/png;base64,{data}"}, "mime_type": "image/png"}

    outcome = await said(Parrot(ToolOutcome([image], {ATTACHMENTS: [file]})), group(api_key=KEY))

    redacted = base64.b64encode(b"x" * 100 + b"***" + b"y" * 100).decode()
    assert outcome.content == [ImageContentItem(image=ImageSource(data=redacted))]
    assert outcome.metadata[ATTACHMENTS][0]["content"]["uri"] == f"data:image/png;base64,{redacted}"


async def test_what_describes_a_file_repeats_no_credential() -> None:
    for uri in ("data:image/png;base64,AAAA", "https://x.example/", f"data:image/{KEY};base64,AAAA"):
        file = {"content": {"uri": uri}, "mime_type": f"image/{KEY}", "title": KEY}

        outcome = await said(Parrot(ToolOutcome("", {ATTACHMENTS: [file]})), group(api_key=KEY))

        content = {"uri": uri.replace(KEY, "***")}
        assert outcome.metadata[ATTACHMENTS] == [{"content": content, "mime_type": "image/***", "title": "***"}]


async def test_a_request_looks_for_so_many_credentials_that_do_not_fit_together() -> None:
    async def call(*numbers: int) -> None:
        for number in numbers:
            await said(Parrot("x"), group(tools=[{"headers": {"X-Key": f"{number:04}" * (MOST_KNOWN // 4)}}]))

    await call(*[0, 1] * 100)
    with pytest.raises(InvalidRequest, match="too many credentials in total"):
        await call(*range(20))


async def test_a_data_url_that_is_not_base64_is_redacted_as_text() -> None:
    files = [{"content": {"uri": uri}, "mime_type": ""} for uri in (f"data:text/plain,{KEY}", f"data:;base64,!{KEY}")]

    outcome = await said(Parrot(ToolOutcome("", {ATTACHMENTS: files})), group(api_key=KEY))

    assert [each["content"]["uri"] for each in outcome.metadata[ATTACHMENTS]] == [
        "data:text/plain,***",
        "data:;base64,!***",
    ]


async def test_args_that_an_agent_fixes_are_redacted_and_those_of_the_model_are_not() -> None:
    arguments = {"api_key": KEY, "password": "of-the-model", "q": "tea"}
    invocation = Invocation("t", arguments, "c", fixed=frozenset({"api_key", "q"}))

    outcome = await said(Parrot(f"got {KEY}, of-the-model and tea"), group(), invocation)

    assert outcome.content == "got ***, of-the-model and tea"


async def test_a_short_credential_is_not_replaced() -> None:
    assert (await said(Parrot("max tokens: x"), group(api_key="x"))).content == "max tokens: x"


async def test_without_credentials_an_outcome_passes_untouched() -> None:
    outcome = ToolOutcome("as it is")

    assert await said(Parrot(outcome), group()) is outcome


async def test_keys_that_become_known_during_a_call_are_redacted() -> None:
    class Finds(Parrot):
        async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
            remember({KEY}, in_models_text=False)
            return ToolOutcome(f"your key is {KEY}")

    assert (await said(Finds(), group())).content == "your key is ***"


async def test_a_long_outcome_is_redacted_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[Any] = []
    to_thread = asyncio.to_thread

    async def watched(function: Any, *args: Any) -> Any:
        threads.append(function)
        return await to_thread(function, *args)

    monkeypatch.setattr(asyncio, "to_thread", watched)

    short = await said(Parrot(KEY), group(key=KEY))
    long = await said(Parrot("x" * IN_THREAD + KEY), group(key=KEY))

    assert (short.content, long.content) == ("***", "x" * IN_THREAD + "***")
    assert len(threads) == 1


@pytest.mark.parametrize("way", ["check", "known_tools", "list_tools", "invoke"])
async def test_an_error_and_its_causes_repeat_no_credential(way: str) -> None:
    error = ToolUnavailable("no")
    error.message = f"The server says: bad key {KEY}"
    error.__cause__ = ValueError(KEY)
    provider, toolgroup = RedactedProvider(Parrot(error=error)), group(api_key=KEY)

    async def call() -> None:
        match way:
            case "check":
                await provider.check(toolgroup)
            case "known_tools":
                provider.known_tools(toolgroup, {})
            case "list_tools":
                await provider.list_tools(toolgroup, {})
            case _:
                await provider.invoke(toolgroup, Invocation("t", {}, "c"))

    with pytest.raises(ToolUnavailable) as caught:
        await call()

    assert caught.value.message == str(caught.value) == "The server says: bad key ***"
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


async def test_an_error_keeps_its_class_and_its_fields() -> None:
    error = ToolUnauthorized(f"no {KEY}", code="c", param="p")

    with pytest.raises(StintError) as caught:
        await said(Parrot(error=error), group())

    assert caught.value is error
    assert (error.code, error.param) == ("c", "p")


async def test_lists_of_tools_repeat_no_credential(caplog: pytest.LogCaptureFixture) -> None:
    schema = {"type": "object", "properties": {"q": {"description": f"like {KEY}"}}}
    tools = [ToolSignature("add", f"Called with {KEY}.", schema), ToolSignature(f"get_{KEY}", "", {})]
    provider, data = RedactedProvider(Parrot(tools=tools)), {"mcp_headers": {URI: {"Authorization": f"Bearer {KEY}"}}}

    for listed in (await provider.list_tools(group(), data), provider.known_tools(group(), data)):
        assert listed is not None
        assert [tool.name for tool in listed] == ["add"]
        assert listed[0].description == "Called with ***."
        assert listed[0].parameters["properties"]["q"]["description"] == "like ***"
    assert KEY not in caplog.text
    assert "its name contains a credential" in caplog.text


async def test_what_a_call_brings_along_is_kept_out_of_what_is_said_later() -> None:
    await said(Parrot(), group(api_key=KEY))

    assert redact(f"later {KEY}") == "later ***"


async def test_more_credentials_than_can_be_looked_for_are_refused() -> None:
    toolgroup = group(api_key="k" * (MOST_KNOWN + 1))

    with pytest.raises(InvalidRequest, match=f"more than {MOST_KNOWN:,} characters"):
        await RedactedProvider(Parrot()).check(toolgroup)


async def test_a_header_that_is_hardly_a_credential_is_left_in_what_models_say() -> None:
    tenant = {"X-Tenant": "acme-corporation", "X-Api-Key": KEY}
    data = {"mcp_headers": {URI: {"X-Team": "the-blue-team", "Authorization": "Bearer abcdefgh"}}}

    outcome = await said(Parrot(f"acme-corporation {KEY}"), group(tools=[{"headers": tenant}]), call_with(data))

    redactor = redactor_of_models_text()
    assert outcome.content == "*** ***"
    assert redactor is not None
    assert redactor.text(f"acme-corporation the-blue-team {KEY} abcdefgh") == "acme-corporation the-blue-team *** ***"


def call_with(provider_data: dict[str, Any]) -> Invocation:
    return Invocation("t", {}, "c", provider_data)


def test_providers_are_redacted_by_name() -> None:
    parrot = Parrot()
    providers = RedactedProviders({"p": parrot})

    assert (list(providers), len(providers), providers.get("other")) == (["p"], 1, None)
    assert providers["p"] == RedactedProvider(parrot)


@pytest.mark.parametrize(
    ("config", "warned"),
    [
        ({"api_key": "x"}, True),
        ({"tools": [{"headers": {"X-Key": "1234567"}}]}, True),
        ({"api_key": "12345678"}, False),
        ({"tools": [{"headers": {"Authorization": "Bearer {token}", "Accept": "*/*"}}]}, False),
        ({"tools": [{"body": {"key": "{key}"}}]}, False),
        (None, False),
    ],
)
def test_a_credential_that_is_never_replaced_is_warned_of_without_its_value(
    config: dict[str, Any] | None, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    warn_of_short_secrets("g", config)

    assert ("fewer than 8 characters" in caplog.text) == warned
    assert "1234567" not in caplog.text
