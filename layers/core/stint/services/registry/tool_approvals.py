"""The tools of a turn whose calls wait for the client's approval.

A rule says so: of the tools of a toolgroup, of one of them, or of all that the server runs. A tool waits if any rule of
the agent or of the turn says so, and none says the opposite. So a turn may add approvals, and removes none, whatever it
names again and with whichever args (docs/decisions.md, entry 152).

A rule follows what a call reaches, not only the name by which a toolgroup is listed:

    an MCP server       its URL, under any label, registered or not, and also if the toolgroup of the rule is left out
                        because it does not answer this time
    a function          its name or ARN, also in another toolgroup
    an HTTP endpoint    its method and URL, likewise. A placeholder is any segment of a path
    any other tool      its toolgroup, since two tools of a turn cannot have one name

Only calls by the model can wait. What runs a tool without one is refused: a retrieval before the model call, and a
query generator.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from stint.dataclasses import dataclass, replace
from stint.domain.approvals import Approval, McpApprovalFilter, needs_approval
from stint.domain.errors import InvalidRequest
from stint.domain.inference import ToolSignature
from stint.loop.toolbox import ServerTool
from stint.services.registry.selections import APPROVAL, Selection, as_port, name_for_model, read_approval
from stint.services.registry.tool_targets import is_same_server, is_same_target, target_of
from stint.tools.port import MCP, QUERY_GENERATOR, WEB_SEARCH_GROUP, Toolgroup

DEFAULT_GENERATOR = "query_generator"
"""The toolgroup of a custom query generator that names none."""
FindTools = Callable[[str, Mapping[str, Any]], Awaitable[Sequence[ServerTool]]]


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


@dataclass(frozen=True, slots=True)
class GeneratorTools:
    """The tools that the query generator of the tool `owner` may run: those of the toolgroup `named`."""

    owner: str
    named: str
    tools: Sequence[ServerTool]


def find_approvals(
    server: Mapping[str, ServerTool], rules: Sequence[ApprovalRule], generators: Sequence[GeneratorTools] = ()
) -> frozenset[str]:
    """Return the names of the tools whose calls wait for approval. `generators` are those of the tools' args.

    Raises:
        InvalidRequest: the query generator of a tool would run a tool that waits.
    """
    asking = {name for name, tool in server.items() if any(rule.covers(tool) for rule in rules)}
    reached = [(target_of(server[name]), server[name].toolgroup.toolgroup_id) for name in asking]

    def reaches_asking(tool: ServerTool) -> bool:
        # Within a toolgroup, two tools of one target are two by intent, of which the rules name those that wait.
        target, group = target_of(tool), tool.toolgroup.toolgroup_id
        return any(other != group and is_same_target(target, found) for found, other in reached)

    for each in generators:
        covered = any(rule.may_cover(each.named) or any(map(rule.covers, each.tools)) for rule in rules)
        if covered or any(map(reaches_asking, each.tools)):
            raise refuse_generator(each)
    return frozenset(name for name, tool in server.items() if name in asking or reaches_asking(tool))


async def find_generators(server: Mapping[str, ServerTool], find_tools: FindTools) -> list[GeneratorTools]:
    """Return the query generators among the args of tools. `find_tools` returns the tools of a toolgroup."""
    named = [(tool.signature.name, *each) for tool in server.values() for each in generators_of(tool.args)]
    return [GeneratorTools(owner, group, await find_tools(group, args)) for owner, group, args in named]


def refuse_generator(generator: GeneratorTools) -> InvalidRequest:
    """Return the error for a query generator that would run a tool whose calls wait."""
    return InvalidRequest(
        f"The query generator of {generator.owner!r} calls a tool of {generator.named[:200]!r}, whose calls wait for "
        "approval. Only calls by the model can wait. Choose another generator.",
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
            defined = read_approval(group.config, "toolgroups")
            if group.provider_id != MCP:  # whose server may have other tools at any time
                refuse_unknown_names(
                    defined, names_listed(replace(selection, tool_name=None), listed), repr(group.toolgroup_id)
                )
            rules.append(ApprovalRule(defined, group))
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


def generators_of(args: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the toolgroups that args name as those of query generators, with the args of these."""
    config = args.get("query_config")
    holders = [args, config] if isinstance(config, Mapping) else [args]
    found = [each for holder in holders if isinstance(each := holder.get(QUERY_GENERATOR), Mapping)]
    custom = [each for each in found if each.get("type") == "custom"]
    return [(str(each.get("toolgroup") or DEFAULT_GENERATOR), each.get("args") or {}) for each in custom]
