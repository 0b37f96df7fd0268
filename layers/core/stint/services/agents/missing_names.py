"""The models, toolgroups, tools and shields that an agent names and that its first turn would not find.

An agent may name what is registered later, so it is stored all the same, and its creator is told. What is configured or
in this process's copy of the registrations is found without a read. For other names, the registrations are read once.
The tools of MCP servers are not looked for: only a server knows them, and it may show each caller others.
"""

from collections.abc import Iterator
from itertools import chain

from stint.domain.errors import InvalidRequest, NotSupported, StintError
from stint.domain.inference import InferenceRequest
from stint.domain.llama_stack.agents import AgentConfig
from stint.models.routing import Router
from stint.services.registry.catalogue import Catalogue
from stint.services.registry.model_ids import find_models
from stint.services.registry.registry import Registry
from stint.services.registry.selections import Selection
from stint.services.registry.tools import Tools, is_disabled
from stint.services.registry.unsupported_tools import refuse_not_offered
from stint.tools.port import MCP_SERVER, NO_PROVIDER_DATA, REMOTE_EXECUTION

SCRIPTED = "scripted"


async def explain_missing_names(config: AgentConfig, tools: Tools) -> list[str]:
    """Return a message for each name of an agent that its turns would not find. Raises StoreUnavailable."""
    registry = tools.registry
    known = registry.configured if registry.cached is None else registry.cached[1]
    if not any(explain_names(config, tools, known)):
        return []
    return list(explain_names(config, tools, await registry.catalogue(fresh=True)))


def explain_names(config: AgentConfig, tools: Tools, catalogue: Catalogue) -> Iterator[str]:
    """Yield a message for each name that a catalogue lacks."""
    yield from explain_model(config.model, tools.registry, catalogue)
    groups = (group if isinstance(group, str) else group.name for group in config.toolgroups if not is_disabled(group))
    for name in dict.fromkeys(groups):
        if name not in (REMOTE_EXECUTION, MCP_SERVER) and name not in catalogue.toolgroups:
            yield from explain_tool(name, tools, catalogue)
    of_tools = [(*each.input_shields, *each.output_shields) for each in (config.tool_shields or {}).values()]
    for name in dict.fromkeys([*config.input_shields, *config.output_shields, *chain(*of_tools)]):
        if name not in catalogue.shields:
            yield f"Shield {name!r} is not registered. GET /v1/shields lists the registered ones."


def explain_model(name: str, registry: Registry, catalogue: Catalogue) -> Iterator[str]:
    """Yield why a model cannot answer, if it cannot. The error names only ids that the caller may use."""
    try:
        found = find_models(catalogue, name, registry.router.names_provider)
        check_scripted(registry.require_full_id(name, found, catalogue), registry.router)
    except InvalidRequest as error:
        yield error.message


def check_scripted(full_id: str, router: Router) -> None:
    """Raise InvalidRequest for an id without a provider, or that the scripted one does not have.

    The models of other providers are known to these only.
    """
    provider, model_id = router.route(full_id)
    if provider == SCRIPTED:
        router.resolve(full_id)[0].check(InferenceRequest(model_id, ()))


def explain_tool(name: str, tools: Tools, catalogue: Catalogue) -> Iterator[str]:
    """Yield why `group/tool` is not found, if it is not. The tools of an MCP server are not looked for."""
    group = catalogue.toolgroups.get(name.rpartition("/")[0])
    if group is None:
        yield explain_toolgroup(name)
    elif group.mcp_endpoint is None:
        try:
            known = tools.known(group, NO_PROVIDER_DATA)
            if known is not None:
                tools.select_tools(Selection(group, name.rpartition("/")[2], {}), known)
        except StintError as error:
            yield error.message


def explain_toolgroup(name: str) -> str:
    try:
        refuse_not_offered(name)
    except NotSupported as error:
        return error.message
    return f"Toolgroup {name!r} is not registered. GET /v1/toolgroups lists the registered ones."
