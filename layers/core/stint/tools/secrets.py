"""Callers' credentials, struck out of what tools answer: servers repeat what they were sent, and answers are stored."""

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from stint.domain.content import Content, ContentItem, TextContentItem
from stint.domain.errors import InvalidRequest
from stint.tools.concealment import is_secret
from stint.tools.headers import read_headers
from stint.tools.port import Invocation, Toolgroup, ToolOutcome, ToolProvider

STRUCK = "***"
SHORTEST = 8
"""Characters: what is shorter occurs by chance, and a secret of that length is none."""
_HEADERS = ("mcp_headers", "http_headers")
_PUBLIC = frozenset({"accept", "accept-language", "cache-control", "content-type", "prefer", "range", "user-agent"})


async def run_tool(provider: ToolProvider, toolgroup: Toolgroup, invocation: Invocation) -> ToolOutcome:
    """Run a tool, and strike the caller's credentials out of its outcome; raises as the port says."""
    secrets = secrets_of(invocation.provider_data)
    return strike_outcome(await provider.invoke(toolgroup, invocation), secrets)


def secrets_of(provider_data: Mapping[str, Any]) -> frozenset[str]:
    """Give the credentials in a caller's provider data: what is named like one, and the values of headers."""
    secrets = {value for name, value in provider_data.items() if isinstance(value, str) and is_secret(name)}
    for name in _HEADERS:
        given = provider_data.get(name)
        for headers in given.values() if isinstance(given, dict) else ():
            with suppress(InvalidRequest):  # the tool's provider refuses it, in words that fit
                secrets |= secrets_in(read_headers(headers, name))
    return frozenset(secret for secret in secrets if len(secret) >= SHORTEST)


def secrets_in(headers: Mapping[str, str]) -> set[str]:
    """Give the values of headers, whole and without their scheme; those of headers that are no secret stay out."""
    values = [value for name, value in headers.items() if name.lower() not in _PUBLIC]
    return {secret for value in values for secret in (value, value.split(" ")[-1]) if len(secret) >= SHORTEST}


def strike(text: str, secrets: Collection[str]) -> str:
    """Strike secrets out of a text, also where JSON or a URL has them escaped."""
    forms = {form for secret in secrets for form in (secret, json.dumps(secret)[1:-1], quote(secret, safe=""))}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, STRUCK)
    return text


def strike_outcome(outcome: ToolOutcome, secrets: Collection[str]) -> ToolOutcome:
    """Strike secrets out of an outcome's texts and its metadata; images and files stay as they are."""
    if not secrets:
        return outcome
    content, metadata = strike_content(outcome.content, secrets), strike_json(outcome.metadata, secrets)
    return replace(outcome, content=content, metadata=metadata)


def strike_content(content: Content, secrets: Collection[str]) -> Content:
    def strike_item(item: ContentItem) -> ContentItem:
        return TextContentItem(text=strike(item.text, secrets)) if isinstance(item, TextContentItem) else item

    if isinstance(content, str):
        return strike(content, secrets)
    return [strike_item(item) for item in content] if isinstance(content, list) else strike_item(content)


def strike_json(value: Any, secrets: Collection[str]) -> Any:
    if isinstance(value, str):
        return strike(value, secrets)
    if isinstance(value, dict):
        return {strike_json(name, secrets): strike_json(part, secrets) for name, part in value.items()}
    return [strike_json(part, secrets) for part in value] if isinstance(value, list) else value
