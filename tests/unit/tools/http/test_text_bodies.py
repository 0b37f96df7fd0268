"""Text bodies and headers with placeholders: an argument stays where its placeholder is."""

import json
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl
from xml.etree import ElementTree

import pytest
from tests.servers.scripted_http import ScriptedHTTPServer

from stint.domain.content import text_of
from stint.domain.errors import InvalidRequest
from stint.net.guard import Guard
from stint.tools.http.provider import HttpEndpoints
from stint.tools.http.text_bodies import fill_text_body, find_misplaced
from stint.tools.port import Invocation, Toolgroup, ToolOutcome

FORM, JSON, XML, HTML = "application/x-www-form-urlencoded", "application/json", "application/xml", "text/html"
LINES = "application/x-ndjson"
HOSTILE = [
    "x&account=theirs",
    'x", "account": "theirs',
    "x\\",
    '\\", "account": "theirs", "',
    "</t><account>theirs</account><t>",
    '" account="theirs',
    "' account='theirs",
    "]]><account>theirs</account><![CDATA[",
    "--><account>theirs</account><!--",
    'x\n{"account": "theirs"}\n',
    'x\u2028{"account": "theirs"}\u2028',
    "{account}",
    "a;account=theirs\r\n+%26 é",
]


def fill(text: str, content_type: str, **arguments: Any) -> str:
    return fill_text_body(text, content_type, arguments, {"t", "n", *arguments})


@pytest.mark.parametrize("value", HOSTILE)
def test_an_argument_is_the_value_of_a_form_field(value: str) -> None:
    sent = fill("account=ours&t={t}&n=a-{n}", FORM, t=value, n=[1])

    assert parse_qsl(sent) == [("account", "ours"), ("t", value), ("n", "a-[1]")]
    assert ";" not in sent


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("content_type", [JSON, "text/plain", "", "application/vnd.api+json; charset=utf-8"])
def test_an_argument_is_in_a_string_or_a_value_of_json(value: str, content_type: str) -> None:
    sent = fill('{"account": "ours", "t": "a: {t}", "n": {n}, "z": {"{": [{t}, "\\"{absent}"]}}', content_type, t=value)

    parsed = json.loads(sent, object_pairs_hook=lambda pairs: pairs)
    assert parsed == [
        ("account", "ours"),
        ("t", f"a: {value}"),
        ("n", None),
        ("z", [("{", [value, '"{absent}'])]),
    ]


@pytest.mark.parametrize("value", HOSTILE)
def test_an_argument_stays_in_its_line_of_json(value: str) -> None:
    sent = fill('{"index": "ours"}\n{"t": "{t}", "n": {n}}\n', LINES, t=value, n={"a": [1]})

    assert [json.loads(line) for line in sent.splitlines()] == [{"index": "ours"}, {"t": value, "n": {"a": [1]}}]


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("content_type", [XML, "text/xml; charset=utf-8", "application/soap+xml"])
def test_an_argument_is_a_text_or_an_attribute_of_xml(value: str, content_type: str) -> None:
    text = "<r><account a='{t}' b=\"> {t}\">ours</account><t>{t}</t><c><![CDATA[]]{t}]]></c><e>{n}</e></r>"

    root = ElementTree.fromstring(fill(text, content_type, t=value))

    as_text = value.replace("\r\n", "\n")  # as parsers read the ends of lines
    as_attribute = value.replace("\r\n", " ").replace("\n", " ")
    assert [each.tag for each in root] == ["account", "t", "c", "e"]
    assert [each.text for each in root] == ["ours", as_text, f"]]{as_text}", None]
    assert root[0].attrib == {"a": as_attribute, "b": f"> {as_attribute}"}


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[Any] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))


@pytest.mark.parametrize("value", HOSTILE)
def test_an_argument_is_a_text_or_an_attribute_of_html(value: str) -> None:
    sent = fill('<!doctype html><p title="{t}">{t}<br>{t}<script>let a = "{}"</script>', HTML, t=value)

    assert Tags(sent).tags == [("p", [("title", value)]), ("br", []), ("script", [])]


@pytest.mark.parametrize(
    ("content_type", "text"),
    [
        (FORM, "{t}=x&account=ours"),
        (FORM, "account=ours&{t}"),
        (JSON, '{"account": "ours", "{t}": 1}'),
        (JSON, '{"account": "ours", "a{t}"\n : 1}'),
        (JSON, '{"account": "ours", "t": "{t}'),
        (JSON, "account: ours, t: {t}"),
        (JSON, '{"t": "{t}\\'),
        (LINES, '{"a": 1}\n{"t": "{t}"'),
        (XML, "<r {t}='x'/>"),
        (XML, "<r a={t} />"),
        (XML, "<{t}>ours</{t}>"),
        (XML, "<r><!-- {t} --></r>"),
        (XML, "<?xml version='{t}'?><r/>"),
        (XML, "<!DOCTYPE r [<!ENTITY e '{t}'>]><r/>"),
        (XML, "<r a='{t}"),
        (HTML, "<script>let a = '{t}'</script>"),
        (HTML, "<STYLE>p { color: {t} }"),
        (HTML, "<![CDATA[{t}]]>"),
        ("text/plain", "account: ours\nt: {t}"),
        ("", "t is {t}"),
        ("application/graphql", '{ search(text: "{t}") }'),
        ("{t}", '{"account": "ours", "t": "{t}"}'),
        ("multipart/form-data; boundary=b", "--b\r\n\r\n{t}\r\n--b--"),
    ],
)
async def test_a_placeholder_where_no_argument_can_be_written_is_refused(
    guard: Guard, server: ScriptedHTTPServer, content_type: str, text: str
) -> None:
    tools, toolgroup = HttpEndpoints(guard), group(server, content_type, text)

    with pytest.raises(InvalidRequest, match="body has the placeholder 't'"):
        await tools.check(toolgroup)
    outcome = await call(tools, toolgroup, t="tea")  # of a tool that was registered before

    assert outcome.error
    assert "the placeholder 't' where no argument can be written" in text_of(outcome.content)
    assert server.requests == []
    assert find_misplaced(text, content_type, ["other"]) is None
    assert find_misplaced(text, content_type, []) == "t"


async def test_braces_that_no_argument_fills_stay(guard: Guard, server: ScriptedHTTPServer) -> None:
    tools, toolgroup = HttpEndpoints(guard), group(server, "application/graphql", "{ user {id} }")

    await tools.check(toolgroup)
    await call(tools, toolgroup)
    refused = await call(tools, toolgroup, id="1")

    assert [request.body for request in server.requests] == [b"{ user {id} }"]
    assert refused.error


@pytest.mark.parametrize("content_type", ["", "text/plain", FORM, "application/graphql"])
async def test_a_body_that_is_a_placeholder_is_the_argument(
    guard: Guard, server: ScriptedHTTPServer, content_type: str
) -> None:
    tools, toolgroup = HttpEndpoints(guard), group(server, content_type, "{t}")

    await tools.check(toolgroup)
    await call(tools, toolgroup, t="a=b&c")

    assert [request.body for request in server.requests] == [b"a=b&c"]


@pytest.mark.parametrize(("content_type", "text"), [(FORM, "account=ours"), (JSON, '{"account": "ours"}')])
async def test_no_argument_is_a_field_of_a_text_body(
    guard: Guard, server: ScriptedHTTPServer, content_type: str, text: str
) -> None:
    await call(HttpEndpoints(guard), group(server, content_type, text), Account="theirs", q="tea")

    assert [(request.path, request.body) for request in server.requests] == [("/?q=tea", text.encode())]


@pytest.mark.parametrize(
    ("header", "template", "value"),
    [
        ("Cookie", "account=ours; t={t}", "x; account=theirs"),
        ("cookie", "t={t}", "x account=theirs"),
        ("Cookie", "t={t}", 'x"'),
        ("X-Options", "account=ours, t={t}", "x, account=theirs"),
        ("Accept", "text/{t}", "plain;q=1"),
        ("X-Options", "t {t}", "x\ty"),
    ],
)
async def test_an_argument_begins_no_part_of_a_header(
    guard: Guard, server: ScriptedHTTPServer, header: str, template: str, value: str
) -> None:
    outcome = await call(HttpEndpoints(guard), group(server, "", None, {header: template}), t=value)

    assert outcome.error
    assert f"the header '{header}' has an argument within a longer text, which cannot contain" in text_of(
        outcome.content
    )
    assert server.requests == []


async def test_a_header_that_is_a_placeholder_is_the_argument(guard: Guard, server: ScriptedHTTPServer) -> None:
    headers = {"Accept": "{t}", "Cookie": "a=1; t={t}-{n}", "X-About": "about {n}"}

    await call(HttpEndpoints(guard), group(server, "", None, headers | {"Cookie": "{t}"}), t="a;b, c", n="some tea")
    await call(HttpEndpoints(guard), group(server, "", None, headers), t="a/b", n="2")

    first, second = (request.headers for request in server.requests)
    assert (first["accept"], first["cookie"], first["x-about"]) == ("a;b, c", "a;b, c", "about some tea")
    assert second["cookie"] == "a=1; t=a/b-2"


def group(
    server: ScriptedHTTPServer, content_type: str, body: str | None, headers: dict[str, str] | None = None
) -> Toolgroup:
    tool = {
        "name": "ticket",
        "url": f"{server.url}/",
        "method": "POST",
        "parameters": {"type": "object", "properties": {"t": {}, "n": {}}},
        "headers": headers or ({"content-type": content_type} if content_type else {}),
        "body": body,
    }
    return Toolgroup("http::tickets", "remote-execution", config={"tools": [tool]})


async def call(tools: HttpEndpoints, toolgroup: Toolgroup, **arguments: Any) -> ToolOutcome:
    return await tools.invoke(toolgroup, Invocation("ticket", arguments, "call_1"))
