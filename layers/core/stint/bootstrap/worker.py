"""Composition of the worker, which also deletes the schedules of automations."""

from functools import cached_property

from stint.bootstrap.adapters import Adapters
from stint.bootstrap.openai import OpenAIComposition
from stint.bootstrap.schedules import make_schedules


class WorkerComposition(OpenAIComposition):
    """The parts of a process of the worker."""

    @cached_property
    def adapters(self) -> Adapters:
        return Adapters(self.settings, make_schedules=make_schedules)
