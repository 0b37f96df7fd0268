"""The option PROTOCOLS of `make build`: by which protocols the stack's agents can be called, beside their APIs.

Each protocol is a folder of the core layer, with routes of the function `protocols`. A build without one has neither,
and a build with `none` has no such function. What was left out is known from the template of the build.
"""

import json
import re
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Template = dict[str, Any]

NONE = "none"
FUNCTION = "Protocols"
RESOURCES = (FUNCTION, "ProtocolsLogs")
RESOURCE = "NamesMcpResource"
"""The condition under which a refused credential names that document."""
OPENAPI = Path("http", "static", "openapi.json")
REFERENCE = re.compile(r'"#/components/schemas/([^"]+)"')


@dataclass(frozen=True)
class Protocol:
    """The folder of a protocol, the tag of its routes, and the events of the function that are these routes."""

    folder: str
    tag: str
    events: tuple[str, ...]


PROTOCOLS = {
    "mcp": Protocol(
        "mcp_server", "MCP", ("Mcp", "McpResource", "ProtectedResource", "ProtectedResourceOfMcp", "AgentMcp")
    ),
    "a2a": Protocol("a2a", "A2A", ("AgentA2a", "AgentCard", "ServerCard")),
    "ag-ui": Protocol("ag_ui", "AG-UI", ("AgentAgUi",)),
}
ALL = tuple(PROTOCOLS)


def read_protocols(value: str) -> tuple[str, ...]:
    """Return the protocols that a value such as `mcp,a2a` names, in one order. Raises ValueError."""
    names = {name.strip() for name in (value or ",".join(ALL)).split(",")}
    if names == {NONE}:
        return ()
    if not names <= set(ALL):
        raise ValueError(f"PROTOCOLS={value} is neither {NONE} nor a list of: {', '.join(ALL)}")
    return tuple(name for name in ALL if name in names)


def use_protocols(template: Template, chosen: Collection[str]) -> None:
    """Remove the routes of the other protocols from a parsed template, and the function if no protocol is left."""
    if "mcp" not in chosen:
        name_no_resource(template)
    if not chosen:
        remove_function(template)
        return
    events = template["Resources"][FUNCTION]["Properties"]["Events"]
    for name in set(ALL) - set(chosen):
        for event in PROTOCOLS[name].events:
            del events[event]


def name_no_resource(template: Template) -> None:
    """Refuse credentials without naming the document by which clients of MCP find the issuer of tokens."""
    if template["Conditions"].pop(RESOURCE, None) is None:
        return
    for response in template["Resources"]["Api"]["Properties"]["GatewayResponses"].values():
        headers = response["ResponseParameters"]["Headers"]
        named = headers.get("WWW-Authenticate")
        if isinstance(named, dict):
            headers["WWW-Authenticate"] = named["Fn::If"][2]


def remove_function(template: Template) -> None:
    resources = template["Resources"]
    del template["Parameters"][f"{FUNCTION}ReservedConcurrency"], template["Conditions"][f"Reserves{FUNCTION}"]
    for name in RESOURCES:
        del resources[name]
    del resources["Alarms"]["Properties"]["Parameters"][f"{FUNCTION}Name"]
    isolation = resources["Isolation"]["Properties"]["Parameters"]["FunctionRoleArns"]["Fn::Join"]
    isolation[1] = without_role(isolation[1])
    roles = resources["NoRequestsOfThisStack"]["Properties"]["Statement"]["Condition"]["ArnEquals"]
    roles["aws:PrincipalArn"] = without_role(roles["aws:PrincipalArn"])


def without_role(arns: list[Any]) -> list[Any]:
    return [each for each in arns if f"{FUNCTION}Role" not in str(each)]


def built_protocols(template: Template) -> tuple[str, ...]:
    """Return the protocols whose routes a built template has."""
    events = template["Resources"].get(FUNCTION, {}).get("Properties", {}).get("Events", {})
    return tuple(name for name, protocol in PROTOCOLS.items() if protocol.events[0] in events)


def left_out(template: Template) -> tuple[Protocol, ...]:
    """Return the protocols that a build with this template does not have."""
    return tuple(protocol for name, protocol in PROTOCOLS.items() if name not in built_protocols(template))


def leave_out(package: Path, protocols: Collection[Protocol]) -> None:
    """Remove the folders of protocols from a built package, and their routes from its OpenAPI document."""
    for protocol in protocols:
        shutil.rmtree(package / protocol.folder)
    if protocols:
        document = package / OPENAPI
        text = without_routes(document.read_text(), protocols)
        document.unlink()  # it may be a link to the source
        document.write_text(text)


def without_routes(text: str, protocols: Collection[Protocol]) -> str:
    """Return an OpenAPI document without the operations of protocols, their tags, and the types that only they use."""
    described: Template = json.loads(text)
    tags = {protocol.tag for protocol in protocols}
    described["tags"] = [each for each in described["tags"] if each["name"] not in tags]
    described["paths"] = {
        path: operations
        for path, operations in described["paths"].items()
        if not any(tags & set(each.get("tags", ())) for each in operations.values() if isinstance(each, dict))
    }
    schemas = described["components"]["schemas"]
    unused = types_in(json.loads(text)["paths"], schemas) - types_in(described["paths"], schemas)
    for name in unused:
        del schemas[name]
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


def types_in(part: Any, schemas: Template) -> set[str]:
    """Return the names of the types that a part of a document refers to, directly or by other types."""
    found: set[str] = set()
    texts = [json.dumps(part)]
    while texts:
        new = set(REFERENCE.findall(texts.pop())) - found
        found |= new
        texts += [json.dumps(schemas[name]) for name in new]
    return found
