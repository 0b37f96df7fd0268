"""Runs of automations in a process that is the worker, too."""

from functools import partial

from stint.bootstrap.agents import AgentsComposition
from stint.bootstrap.automations import compose_automation_runs
from stint.domain.tasks import AutomationTask
from stint.openai_agents.composition import targets_of


async def run_automation(composition: AgentsComposition, task: AutomationTask, deadline: float) -> None:
    """Handle a task of an automation like the worker."""
    parts = composition.adapters, composition.store, composition.queue.send
    runs = compose_automation_runs(task.tenant, *parts, partial(targets_of, composition, task.tenant))
    await runs.handle(task, deadline)
