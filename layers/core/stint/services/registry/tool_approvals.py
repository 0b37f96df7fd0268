"""The tools of a turn whose calls wait for the client's approval.

A rule says so: of the tools of a toolgroup, of one of them, or of all that the server runs. A tool waits if any rule of
the agent or of the turn says so, and none says the opposite. So a turn may add approvals, and removes none, whatever it
names again and with whichever args (docs/decisions.md, entry 152).

A rule follows what a call reaches, not only the name by which a toolgroup is listed:

    an MCP server       its URL, under any label, registered or not, and also if the toolgroup of the rule is left out
                        because it does not answer this time
    a function          its name or ARN, also in another toolgroup
    an HTTP endpoint    its method and URL, likewise
    any other tool      its toolgroup, since two tools of a turn cannot have one name

Only calls by the model can wait. What runs a tool without one is refused: a retrieval before the model call, and a
query generator.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from posixpath import normpath
from typing import Any
from urllib.parse import unquote, urlsplit

from stint.dataclasses import dataclass
from stint.domain.approvals import Approval, McpApprovalFilter, needs_approval
from stint.domain.errors import InvalidRequest
from stint.domain.inference import ToolSignature
from stint.domain.redaction import MASK
from stint.loop.toolbox import ServerTool
from stint.services.registry.selections import APPROVAL, Selection, as_port, name_for_model, read_approval
from stint.tools.port import MCP, QUERY_GENERATOR, WEB_SEARCH_GROUP, Toolgroup

FUNCTIONS, ENDPOINTS = "lambda-function", "remote-execution"
PORTS = {"http": 80, "https": 443}
DEFAULT_GENERATOR = "query_generator"
"""The toolgroup of a custom query generator that names none."""
Target = tuple[str, ...]
PLACEHOLDER = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """A statement of an agent, a turn or a registration about the calls of tools.

    Without a `toolgroup` it is about all tools of the turn, and without a `tool_name` about all of its toolgroup.
    """

    approval: Approval
    toolgroup: Toolgroup | None = None
    tool_name: str | None = None

    def covers(self, tool: ServerTool) -> bool:
        """Return whether calls of a tool wait because of this rule."""
        names = names_of(tool)
        return self.is_about(tool.toolgroup) and self.tool_name in (None, *names) and self.asks(*names)

    def may_cover(self, name: str) -> bool:
        """Return whether it may cover a tool of a `group` or `group/tool`, which the turn need not have."""
        if self.toolgroup is None or self.toolgroup.toolgroup_id == name:
            return self.approval != "never"
        group, _, tool_name = name.rpartition("/")
        named = self.toolgroup.toolgroup_id == group and self.tool_name in (None, tool_name)
        return named and self.asks(tool_name)

    def asks(self, *names: str) -> bool:
        return needs_approval(self.approval, *names)

    def is_about(self, other: Toolgroup) -> bool:
        own = self.toolgroup
        return own is None or own.toolgroup_id == other.toolgroup_id or is_same_server(own, other)


def find_approvals(server: Mapping[str, ServerTool], rules: Sequence[ApprovalRule]) -> frozenset[str]:
    """Return the names of the tools whose calls wait for approval.

    Raises:
        InvalidRequest: the query generator of a tool would run a tool that waits.
    """
    refuse_generators(server.values(), rules)
    asking = {name for name, tool in server.items() if any(rule.covers(tool) for rule in rules)}
    reached: dict[Target, set[str]] = {}
    for tool in (server[name] for name in asking):
        reached.setdefault(target_of(tool), set()).add(tool.toolgroup.toolgroup_id)
    # Within a toolgroup, two tools of one target are two by intent, of which the rules name those that wait.
    return frozenset(
        name
        for name, tool in server.items()
        if name in asking or reached.get(target_of(tool), set()) - {tool.toolgroup.toolgroup_id}
    )


def refuse_generators(tools: Iterable[ServerTool], rules: Sequence[ApprovalRule]) -> None:
    """Refuse query generators that would run a tool whose calls wait. Raises InvalidRequest."""
    for tool in tools:
        for named in generators_of(tool.args):
            if any(rule.may_cover(named) for rule in rules):
                raise InvalidRequest(
                    f"The query generator of {tool.signature.name!r} calls a tool of {named[:200]!r}, whose calls wait "
                    "for approval. Only calls by the model can wait. Choose another generator.",
                    code="approval_not_possible",
                    param="toolgroups",
                )


def read_rules(
    of_all: Sequence[Approval],
    selections: Sequence[Selection],
    signatures: Mapping[str, Sequence[ToolSignature]],
    server: Mapping[str, ServerTool],
) -> list[ApprovalRule]:
    """Return the rules of a turn. `of_all` are those about all tools; `signatures` has the listed tools of toolgroups.

    Raises:
        InvalidRequest: one names a tool that does not exist, or is where it has no effect.
    """
    if all(signatures.values()):  # a server that does not answer lists no tools
        for approval in of_all:
            refuse_unknown_names(approval, [name for tool in server.values() for name in names_of(tool)], "the turn")
    rules = [ApprovalRule(approval) for approval in of_all]
    for selection in selections:
        group, listed = as_port(selection.toolgroup), signatures[selection.toolgroup.identifier]
        refuse_misplaced(selection, listed)
        if APPROVAL in group.config:
            rules.append(ApprovalRule(read_approval(group.config, "toolgroups"), group))
        if selection.approval is not None:
            if listed:
                refuse_unknown_names(selection.approval, names_listed(selection, listed), repr(group.toolgroup_id))
            rules.append(ApprovalRule(selection.approval, group, selection.tool_name))
    return rules


def rule_of_search(approval: Approval) -> ApprovalRule:
    """Return the rule of a web search that is disabled, which holds if the turn names the search again."""
    return ApprovalRule(approval, Toolgroup(WEB_SEARCH_GROUP, ""))


def names_listed(selection: Selection, listed: Sequence[ToolSignature]) -> list[str]:
    """Return the names of the tools that a selection may use: of each tool the registry's and the model's."""
    pairs = [(each.name, name_for_model(selection.toolgroup.provider_id, each.name)) for each in listed]
    return [name for pair in pairs if selection.tool_name in (None, *pair) for name in pair]


def refuse_misplaced(selection: Selection, listed: Sequence[ToolSignature]) -> None:
    """Refuse `require_approval` among the args of a call, unless a tool has such an argument. Raises InvalidRequest."""
    if APPROVAL in selection.args and not any(APPROVAL in (each.parameters.get("properties") or {}) for each in listed):
        raise InvalidRequest(
            f"The args of the toolgroup {selection.toolgroup.identifier!r} have {APPROVAL!r}, which no tool takes. Set "
            "it beside the args.",
            param="toolgroups",
        )


def refuse_unknown_names(approval: Approval, names: Iterable[str], owner: str) -> None:
    """Refuse a filter with the name of a tool that its `owner` does not have. A mistyped name would protect nothing.

    Raises InvalidRequest.
    """
    known, named = set(names), approval.named if isinstance(approval, McpApprovalFilter) else []
    if (wrong := next((name for name in named if name not in known), None)) is not None:
        raise InvalidRequest(
            f"{APPROVAL} names the tool {wrong[:100]!r}, which {owner} does not have. Its tools are: {sorted(known)}",
            code="tool_not_found",
            param=APPROVAL,
        )


def names_of(tool: ServerTool) -> tuple[str, ...]:
    """Return the names of a tool: the model's, and that of the registry if it is another one."""
    return (tool.signature.name, tool.alias) if tool.alias else (tool.signature.name,)


def is_same_server(one: Toolgroup, other: Toolgroup) -> bool:
    """Return whether two toolgroups are of one MCP server. Notations of one address count as the same.

    Its query does not count, and neither does whether it is encrypted. A masked part may be any.
    """
    if one.mcp_endpoint is None or other.mcp_endpoint is None or not one.provider_id == other.provider_id == MCP:
        return False
    (host, path), (other_host, other_path) = address_of(one.mcp_endpoint), address_of(other.mcp_endpoint)
    return host == other_host and len(path) == len(other_path) and all(map(may_equal, path, other_path))


def may_equal(part: str, other: str) -> bool:
    return part == other or MASK in part or MASK in other


@lru_cache(maxsize=512)
def address_of(url: str) -> tuple[tuple[str, int | None], list[str]]:
    """Return the host and the path of a URL, in one notation."""
    try:
        parts = urlsplit(url)
        port = None if parts.port in (None, PORTS.get(parts.scheme)) else parts.port
    except ValueError:  # nothing can be called there
        return (url, None), []
    path = normpath(f"/{unquote(parts.path).strip('/')}")
    return ((parts.hostname or "").rstrip("."), port), path.casefold().split("/")


def target_of(tool: ServerTool) -> Target:
    """Return what a call reaches: a function, or a method of an HTTP endpoint; for other tools the tool itself."""
    group, itself = tool.toolgroup, (tool.toolgroup.toolgroup_id, tool.signature.name)
    if group.provider_id not in (FUNCTIONS, ENDPOINTS):
        return itself
    entries = group.config.get("tools")
    named = partial(has_name, tool.signature.name)
    entry = next(filter(named, entries), None) if isinstance(entries, list) else None
    if entry is None:
        return itself
    if group.provider_id == FUNCTIONS:
        return FUNCTIONS, function_name(str(entry.get("function")))
    url = str(entry.get("url"))
    (host, port), path = address_of(PLACEHOLDER.sub("{}", url))
    return ENDPOINTS, str(entry.get("method", "GET")).upper(), host, str(port), *path


def has_name(name: str, entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("name") == name


def function_name(reference: str) -> str:
    """Return the name of a function, given that, or a partial or full ARN, with or without a version or an alias."""
    parts = reference.casefold().split(":")
    return parts[parts.index("function") + 1] if "function" in parts[:-1] else parts[0]


def generators_of(args: Mapping[str, Any]) -> list[str]:
    """Return the toolgroups that args name as those of query generators."""
    config = args.get("query_config")
    holders = [args, config] if isinstance(config, Mapping) else [args]
    found = [each for holder in holders if isinstance(each := holder.get(QUERY_GENERATOR), Mapping)]
    return [str(each.get("toolgroup") or DEFAULT_GENERATOR) for each in found if each.get("type") == "custom"]
