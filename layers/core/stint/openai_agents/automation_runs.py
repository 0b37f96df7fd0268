"""Composition of the runs of automations with the sessions that they begin. The worker loads it with the first task."""

from functools import partial

from stint.bootstrap.agents import AgentsComposition
from stint.bootstrap.automation_runs import compose_automation_runs
from stint.openai_agents.composition import targets_of
from stint.services.automations.runs import AutomationRuns


def make_automation_runs(parts: AgentsComposition, tenant: str) -> AutomationRuns:
    """Make the worker's use case of a tenant."""
    get_targets = partial(targets_of, parts, tenant)
    return compose_automation_runs(tenant, parts.adapters, parts.store, parts.queue.send, get_targets)
