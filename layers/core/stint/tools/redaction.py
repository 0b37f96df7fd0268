"""Redaction of credentials in the results, lists and errors of tools, because servers may echo them.

A server that gets a token may repeat it: in an error, a debug header, a file. Its result goes to the model, into the
stored turn, to the client and into logs, and the caller who reads it need not be the operator who registered the token.
So a provider is wrapped: the credentials of the call are collected first, and everything that comes back is searched.

    of the registration      what `mask` hides in its args, and in the URL of its endpoint
    of the caller            values of `provider_data` with a credential's name, and headers
    of the agent or turn     the arguments that the model did not write
    known meanwhile          secrets that are read from AWS during the call (`remember`)

Each is split into parts, since servers repeat a token without its scheme. Parts below SHORTEST characters are not
replaced: they occur in ordinary text. Values of headers that look like words (`X-Tenant: acme`) are redacted in what
tools return, and not in what models write, who may use the word.

All known credentials are searched for in each text, so their total length is limited, and a long outcome is searched in
a thread.

docs/decisions.md, entry 106, has the reasons.
"""

import asyncio
import base64
import binascii
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from stint.dataclasses import dataclass, replace
from stint.domain.content import Content, ContentItem, ImageContentItem, TextContentItem, items_of
from stint.domain.errors import InvalidRequest, StintError
from stint.domain.inference import ToolSignature
from stint.domain.known_secrets import has_room_for, redactor_with, remember
from stint.domain.redaction import MOST_KNOWN, SHORTEST, Redactor
from stint.domain.tools import AskedInput, ElicitedForm
from stint.tools.credential_names import is_key, is_mixed, is_secret
from stint.tools.headers import read_headers
from stint.tools.masker import literal_parts
from stint.tools.masking import (
    has_short_secrets,
    headers_in,
    possible_secrets_in_headers,
    secrets_in,
    secrets_in_headers,
    secrets_in_url,
)
from stint.tools.port import ATTACHMENTS, Invocation, Toolgroup, ToolOutcome, ToolProvider

logger = logging.getLogger(__name__)

IN_THREAD = 200_000
"""Minimum characters of an outcome that is redacted in a thread instead of the event loop."""

NEVER_REPLACED = "it is not redacted in results, errors and logs, because ordinary text may contain it by chance."

_HEADERS = ("mcp_headers", "http_headers")

_SCHEMES = frozenset({"apikey", "basic", "bearer", "bot", "digest", "key", "token"})
_SEPARATORS = re.compile(r"[;,\"']")
_PUBLIC = frozenset(
    {"algorithm", "charset", "consent", "domain", "expires", "keyid", "lang", "language", "locale", "max-age", "nc"}
) | {"path", "qop", "realm", "samesite", "signedheaders", "theme", "timezone", "title", "tz", "uri", "version"}
"""Header parameters whose values are not credentials, and may be ordinary words."""


@dataclass(frozen=True, slots=True)
class RedactedProviders(Mapping[str, ToolProvider]):
    """Providers by name, each wrapped in a `RedactedProvider`."""

    providers: Mapping[str, ToolProvider]

    def __getitem__(self, name: str) -> ToolProvider:
        return RedactedProvider(self.providers[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.providers)

    def __len__(self) -> int:
        return len(self.providers)


@dataclass(frozen=True, slots=True)
class RedactedProvider:
    """A provider whose results, lists and errors do not contain the credentials that it receives.

    These are in the toolgroup's registration, the caller's provider data and the agent's args. The request's other
    known credentials are redacted, too.
    """

    provider: ToolProvider

    async def check(self, toolgroup: Toolgroup, /) -> None:
        """Check a registration before it is stored; see the port."""
        with _redacted_errors(toolgroup, {}):
            await self.provider.check(toolgroup)

    def known_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature] | None:
        """Return a toolgroup's tools without a request; see the port."""
        with _redacted_errors(toolgroup, provider_data) as secrets:
            known = self.provider.known_tools(toolgroup, provider_data)
            return None if known is None else redact_signatures(known, secrets)

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List a toolgroup's tools; see the port."""
        with _redacted_errors(toolgroup, provider_data) as secrets:
            return redact_signatures(await self.provider.list_tools(toolgroup, provider_data), secrets)

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        """Run a tool; see the port."""
        fixed = {name: invocation.arguments.get(name) for name in invocation.fixed}
        with _redacted_errors(toolgroup, invocation.provider_data, fixed) as secrets:
            outcome = await self.provider.invoke(toolgroup, invocation)
            redactor = _redactor_of(secrets)
            if not redactor:
                return outcome
            if size_of(outcome) < IN_THREAD:
                return redact_outcome(outcome, redactor)
            return await asyncio.to_thread(redact_outcome, outcome, redactor)


@contextmanager
def _redacted_errors(
    toolgroup: Toolgroup, provider_data: Mapping[str, Any], fixed: Mapping[str, Any] | None = None
) -> Iterator[frozenset[str]]:
    """Yield the secrets of a call, and redact them from errors and their causes."""
    # Before the provider runs: log lines of the call are redacted as well, from its beginning.
    secrets = secrets_of(toolgroup, provider_data, fixed)
    if sum(map(len, secrets)) > MOST_KNOWN:
        raise InvalidRequest(
            f"The credentials of this call have more than {MOST_KNOWN:,} characters in total. Remove those that the "
            "tool does not need."
        )
    doubtful = {part for value in doubtful_of(toolgroup, provider_data) for part in {value} | parts_of(value)}
    remember(secrets - doubtful)
    remember(secrets & doubtful, in_models_text=False)
    if not has_room_for(secrets):
        raise InvalidRequest(
            "The tools of this request have too many credentials in total. Use fewer of these tools together."
        )
    try:
        yield secrets
    except StintError as error:
        error.message = _redactor_of(secrets).text(error.message)
        error.args = (error.message,)
        # Without its cause, whose text has not been redacted.
        raise error from None


def _redactor_of(secrets: frozenset[str]) -> Redactor:
    """Return a redactor of a call's secrets, including those that became known while it ran."""
    return redactor_with(secrets)


def secrets_of(
    toolgroup: Toolgroup, provider_data: Mapping[str, Any] | None = None, fixed: Mapping[str, Any] | None = None
) -> frozenset[str]:
    """Return the credentials of a call: of the registration, the caller, and the args of the agent or the turn."""
    secrets = secrets_in(toolgroup.config) | secrets_in(dict(fixed or {})) | secrets_of_caller(provider_data or {})
    if toolgroup.mcp_endpoint:
        secrets |= secrets_in_url(toolgroup.mcp_endpoint, endpoint=True)
    return frozenset(part for secret in secrets for part in parts_of(secret) if len(part) >= SHORTEST)


def secrets_of_caller(provider_data: Mapping[str, Any]) -> set[str]:
    """Return the credentials in a caller's provider data: values with a credential's name, and values of headers."""
    secrets = {value for name, value in provider_data.items() if isinstance(value, str) and is_secret(name)}
    for name in _HEADERS:
        given = provider_data.get(name)
        for place, headers in given.items() if isinstance(given, dict) else ():
            secrets |= secrets_in_url(place, endpoint=True)
            with suppress(InvalidRequest):  # the tool's provider refuses it with a specific message
                secrets |= secrets_in_headers(read_headers(headers, name))
    return literal_parts(secrets)


def doubtful_of(toolgroup: Toolgroup, provider_data: Mapping[str, Any]) -> set[str]:
    """Return the values of headers that a model may use as words: `X-Tenant: acme-corp` is hardly a credential."""
    given = [*headers_in(toolgroup.config)]
    for name in _HEADERS:
        places = provider_data.get(name)
        for headers in places.values() if isinstance(places, dict) else ():
            with suppress(InvalidRequest):
                given.append(read_headers(headers, name))
    return {part for headers in given for part in possible_secrets_in_headers(headers)}


def warn_of_short_secrets(toolgroup_id: str, config: Mapping[str, Any] | None) -> None:
    """Log that a registration has credentials that are too short to be redacted."""
    if has_short_secrets(dict(config or {})):
        extra = {"toolgroup_id": toolgroup_id}
        logger.warning(
            f"A toolgroup has a credential of fewer than {SHORTEST} characters: {NEVER_REPLACED}", extra=extra
        )


def redact_signatures(signatures: list[ToolSignature], secrets: frozenset[str]) -> list[ToolSignature]:
    """Redact tools' schemas for models and callers, without tools whose name contains a secret."""
    redactor = _redactor_of(secrets)
    if not redactor:
        return signatures
    shown = []
    for each in signatures:
        # A redacted name could not be called: the server does not know it.
        if redactor.text(each.name) != each.name:
            logger.warning("A tool is omitted: its name contains a credential")
            continue
        description, parameters = redactor.text(each.description), redactor.json(each.parameters)
        shown.append(replace(each, description=description, parameters=parameters))
    return shown


def redact_outcome(outcome: ToolOutcome, redactor: Redactor) -> ToolOutcome:
    """Redact an outcome's texts, images and metadata, including its files."""
    content = redact_content(outcome.content, redactor)
    attached = {
        name: redact_attachments(part, redactor) if name == ATTACHMENTS else redactor.json(part)
        for name, part in outcome.metadata.items()
    }
    asks = redact_question(outcome.asks, redactor) if outcome.asks is not None else None
    return replace(outcome, content=content, metadata=attached, asks=asks)


def redact_question(asked: AskedInput, redactor: Redactor) -> AskedInput:
    """Redact the texts of forms. The state and the server's keys are only sent back to it."""
    forms = {
        key: ElicitedForm(message=redactor.text(form.message), requested_schema=redactor.json(form.requested_schema))
        for key, form in asked.forms.items()
    }
    return asked.model_copy(update={"forms": forms})


def redact_content(content: Content, redactor: Redactor) -> Content:
    def redact_item(item: ContentItem) -> ContentItem:
        if isinstance(item, TextContentItem):
            return TextContentItem(text=redactor.text(item.text))
        image = item.image
        if image.data is None:
            return item
        return ImageContentItem(image=image.model_copy(update={"data": redact_base64(image.data, redactor)}))

    if isinstance(content, str):
        return redactor.text(content)
    return [redact_item(item) for item in content] if isinstance(content, list) else redact_item(content)


def redact_attachments(attachments: Any, redactor: Redactor) -> Any:
    """Redact the files that a tool made. Entries in another form are redacted like other metadata."""
    if not isinstance(attachments, list):
        return redactor.json(attachments)
    return [redact_attachment(each, redactor) if is_file(each) else redactor.json(each) for each in attachments]


def is_file(attached: Any) -> bool:
    content = attached.get("content") if isinstance(attached, dict) else None
    return isinstance(content, dict) and isinstance(content.get("uri"), str)


def redact_attachment(attached: dict[str, Any], redactor: Redactor) -> dict[str, Any]:
    """Redact a file that a tool made: the bytes of its data URL or its address, and its other fields."""
    uri = attached["content"]["uri"]
    head, comma, data = uri.partition(",")
    if uri[:5].lower() == "data:" and head.endswith(";base64"):
        uri = redactor.text(head) + comma + redact_base64(data, redactor)
    else:
        uri = redactor.text(uri)
    described = {name: redactor.json(part) for name, part in attached.items() if name != "content"}
    about = {name: redactor.json(part) for name, part in attached["content"].items() if name != "uri"}
    return attached | described | {"content": attached["content"] | about | {"uri": uri}}


def redact_base64(data: str, redactor: Redactor) -> str:
    """Redact the bytes of base64. Without a secret, it is returned unchanged."""
    try:
        # `surrogateescape` keeps every byte, so that an image without a secret is the same afterwards.
        text = base64.b64decode("".join(data.split()), validate=True).decode("utf-8", "surrogateescape")
    except binascii.Error:
        return redactor.text(data)
    redacted = redactor.text(text)
    return data if redacted == text else base64.b64encode(redacted.encode("utf-8", "surrogateescape")).decode()


def size_of(outcome: ToolOutcome) -> int:
    """Return the number of characters of an outcome's texts and images, and about that of its metadata."""
    parts = items_of(outcome.content)
    sizes = (len(part.text if isinstance(part, TextContentItem) else part.image.data or "") for part in parts)
    return sum(sizes) + len(str(outcome.metadata))


def parts_of(secret: str) -> set[str]:
    """Return a credential without its scheme (`Bearer`), and the parts of it that are secrets.

    These are its last word, the secrets in a Basic login or a URL, and all values of at least 8 characters in it
    (`session=...; theme=dark`, `user:...`), but not their names.
    """
    scheme, _, rest = secret.partition(" ")
    # The scheme is not a part: `Bearer` alone would be redacted in every text about authentication.
    parts = {rest.strip()} if scheme.lower() in _SCHEMES and rest.strip() else {secret, secret.rpartition(" ")[2]}
    if scheme.lower() == "basic":
        with suppress(binascii.Error, UnicodeDecodeError):
            login = base64.b64decode(secret[6:], validate=True).decode()
            parts |= {login, login.partition(":")[2]}
    if "://" in secret:
        return parts | secrets_in_url(secret)
    return parts | _values_in(secret)


def _values_in(secret: str) -> set[str]:
    values: set[str] = set()
    before = ""
    for piece in map(str.strip, _SEPARATORS.split(secret)):
        name, sign, value = (before + piece).rpartition(" ")[2].partition("=")
        before = piece if piece.endswith("=") else ""  # a quoted value follows: `token="..."`
        if sign and name.lower() not in _PUBLIC:
            values |= {value, value.partition(":")[2]}
        elif not sign:
            values.add(name.partition(":")[2])
            values |= {name} if is_key(name) or is_mixed(name) else set()
    return {value for value in values if len(value) >= SHORTEST}
