"""The HTTP request for a call of an endpoint tool.

The model's arguments are untrusted, as they may come from a document that it has read. So a template fixes where each
one goes, and it is written for its place:

    in the path or the query of the URL    percent-encoded; not empty, `.` or `..`
    in `params`                            a field of the query; a list repeats the field
    in a header                            as it is; within a longer text, without separators of its parts
    in a JSON body                         a value of its own type
    in a text body                         escaped by the Content-Type (`text_bodies.py`)
    in no template                         a further field, unless the definition has it

Frameworks disagree about names: `account[0]`, ` Account` and `account` can set the same field. An argument without a
template must not set what the definition has fixed, so names are compared as `fields_of` returns them, for all of these
frameworks at once. The host is never an argument.
"""

import json
import re
from typing import Any, Literal
from urllib.parse import parse_qsl, quote, urlsplit

import httpx
from pydantic import Field, field_validator

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest
from stint.tools.declared_properties import declared_properties
from stint.tools.definitions import ToolDefinition
from stint.tools.headers import fold, read_headers
from stint.tools.http.text_bodies import fill_text_body, find_misplaced, fixed_fields
from stint.tools.http_calls import ToolFailure
from stint.tools.templates import PLACEHOLDER, Absent, fill, fill_text, names_in, text_of

MOST_CHARACTERS = 6_000_000
METHOD_FIELDS = frozenset({"_method"})
"""Fields that replace the method of a request for some servers (Rails, Laravel and Symfony)."""

SEPARATORS = re.compile(r"[;,\0-\x1f\x7f]")
COOKIE_SEPARATORS = re.compile(r"[;,\0-\x20\x7f\"\\]")
"""Characters that no value of a cookie has (RFC 6265). Some servers read a blank as the end of a cookie."""

BODILESS = frozenset({"GET", "HEAD", "DELETE"})


class EndpointDefinition(ToolDefinition):
    """A tool that sends one HTTP request, made from templates (see `stint.tools.templates`).

    A placeholder in `url` may be in the path or the query, and is escaped. `params` go into the query. A `body` that is
    a text is sent as such (see `stint.tools.http.text_bodies`), any other as JSON. Arguments that no template names
    become query fields (for GET, HEAD and DELETE, or if the body is not an object), or else fields of the body, unless
    the definition has a field with that name.
    """

    url: str
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    params: dict[str, Any] = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)
    body: Any = None

    @field_validator("method", mode="before")
    @classmethod
    def raise_case(cls, method: Any) -> Any:
        return method.upper() if isinstance(method, str) else method

    @field_validator("url")
    @classmethod
    def keep_host_fixed(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must begin with http:// or https:// and a host")
        if "{" in parts.netloc:
            raise ValueError("the host cannot come from an argument")
        return url

    @field_validator("headers")
    @classmethod
    def check_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        try:
            return read_headers(headers, "headers")
        except InvalidRequest as error:
            raise ValueError(error.message) from None

    @property
    def origin(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}".lower()

    @property
    def content_type(self) -> str:
        """Return the Content-Type of the definition; empty if it has none."""
        return str(httpx.Headers(self.headers).get("content-type", ""))

    @property
    def misplaced(self) -> str | None:
        """Return a placeholder of a text body where no argument can be written."""
        if not isinstance(self.body, str):
            return None
        return find_misplaced(self.body, self.content_type, declared_properties(self.parameters))

    @property
    def fields(self) -> set[str]:
        """Return the fields of the query and the body that the definition has, as `fields_of` returns them."""
        query = (name for name, _ in parse_qsl(urlsplit(self.url).query, keep_blank_values=True))
        body = set(self.body) if isinstance(self.body, dict) else set()
        if isinstance(self.body, str):
            body = fixed_fields(self.body, self.content_type)
        return {field for name in (*query, *self.params, *body) for field in fields_of(name)}


@dataclass(frozen=True, slots=True)
class EndpointRequest:
    """A request to send. The type of `content` is in the headers."""

    url: httpx.URL
    headers: dict[str, str]
    content: bytes | None


def write_request(tool: EndpointDefinition, arguments: dict[str, Any]) -> EndpointRequest:
    """Fill a tool's templates. Raises ToolFailure if an argument is not possible at its placeholder."""
    declared = {*declared_properties(tool.parameters)}
    names = {*declared, *arguments}
    places = [*names_in(tool.url), *names_in(tool.params), *names_in(tool.headers), *names_in(tool.body)]
    # Before anything is filled: one argument in many places would be a request of many times its size.
    refuse_large(places, arguments)
    # `_method` is allowed if the tool declares it: its author then wants the model to set it.
    used, fields = set(places), tool.fields | (METHOD_FIELDS - declared)
    spare = {
        name: value for name, value in arguments.items() if name not in used and fields.isdisjoint(fields_of(name))
    }
    body = fill_body(tool, arguments, names)
    query = fill(tool.params, arguments, names)
    if tool.method in BODILESS or not (body is Absent.ABSENT or isinstance(body, dict)):
        query = {**spare, **query}
    elif spare:
        body = {**spare, **({} if body is Absent.ABSENT else body)}
    headers = {name: fill_header(name, value, arguments, names) for name, value in tool.headers.items()}
    try:
        read_headers(headers, "headers")
        url = httpx.URL(fill_url(tool.url, arguments, names))
    except (InvalidRequest, httpx.InvalidURL) as error:
        raise ToolFailure(f"The arguments cannot be sent: {error}.") from None
    url = url.copy_merge_params(write_query(query)) if query else url
    return EndpointRequest(url, {**content_type(body), **headers}, write_body(body))


def fields_of(name: str) -> set[str]:
    """Return the fields that a server may set from a name.

    `account[0]`, ` Account` and `[account]` set `account`. `account[id` sets `account_id` in PHP, `account` in Rack.
    """
    plain = name.partition("\0")[0].strip()
    head = re.split(r"[\[\]]", plain.lstrip("[]"))[0]
    return {re.sub(r"[ .\[\]]", "_", each).casefold() for each in (head, plain if is_unclosed(plain) else head)}


def is_unclosed(name: str) -> bool:
    """Return whether a name has a bracket that nothing closes, so that PHP reads it as an underscore."""
    return "]" not in name.partition("[")[2]


def refuse_large(places: list[str], arguments: dict[str, Any]) -> None:
    """Refuse a request that repeats large arguments in many places."""
    sizes = {name: len(text_of(value)) for name, value in arguments.items()}
    size = sum(sizes.get(name, 0) for name in places)
    if size > MOST_CHARACTERS:
        raise ToolFailure(
            f"The arguments fill {size} characters of the request; at most {MOST_CHARACTERS} are allowed."
        )


def fill_url(template: str, arguments: dict[str, Any], names: set[str]) -> str:
    """Fill a URL, with each argument escaped so that it stays within its segment or field."""

    def escape(found: re.Match[str]) -> str:
        name = found[1]
        if name not in names:
            return found[0]
        value = text_of(arguments.get(name, ""))
        # Percent-encoding leaves dots, and servers would resolve `..` to another path.
        if value in ("", ".", ".."):
            raise ToolFailure(f"The argument {name!r} is part of the URL and cannot be {value!r}.")
        return quote(value, safe="")

    return PLACEHOLDER.sub(escape, template)


def write_query(query: dict[str, Any]) -> dict[str, str | list[str]]:
    """Write query fields. A list repeats its field, an object becomes JSON, null is omitted."""
    return {
        name: [text_of(entry) for entry in value] if isinstance(value, list) else text_of(value)
        for name, value in query.items()
        if value is not None
    }


def fill_body(tool: EndpointDefinition, arguments: dict[str, Any], names: set[str]) -> Any:
    if tool.body is None:
        return Absent.ABSENT
    if isinstance(tool.body, str) and not PLACEHOLDER.fullmatch(tool.body):
        return fill_text_body(tool.body, tool.content_type, arguments, names)
    return fill(tool.body, arguments, names)


def fill_header(header: str, template: str, arguments: dict[str, Any], names: set[str]) -> str:
    """Fill a header. Within a longer text, no argument has characters that would begin another part of the header."""
    separators = COOKIE_SEPARATORS if fold(header) == "cookie" else SEPARATORS

    def write(argument: Any) -> str:
        text = text_of(argument)
        if not PLACEHOLDER.fullmatch(template) and (found := separators.search(text)):
            raise ToolFailure(
                f"The arguments cannot be sent: the header {header!r} has an argument within a longer text, which "
                f"cannot contain {found[0]!r}."
            )
        return text

    return fill_text(template, arguments, names, write)


def content_type(body: Any) -> dict[str, str]:
    if body is Absent.ABSENT:
        return {}
    return {"Content-Type": "text/plain; charset=utf-8" if isinstance(body, str) else "application/json"}


def write_body(body: Any) -> bytes | None:
    if body is Absent.ABSENT:
        return None
    return (body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)).encode()
