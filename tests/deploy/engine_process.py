"""The local engine with corrections of what `engine_gaps.py` calls NESTED_ATTRIBUTES, NESTED_NAMES and CONDITIONS.

It is started with the interpreter of `.venv-deploy`, so it imports only modules that need nothing else. Each use of a
correction is logged, so that `test_engine_gaps.py` notices when the engine no longer needs it.
"""

import importlib
import logging
import re
from collections.abc import Mapping
from typing import Any

from infra.local.engine_process import main

KEPT_ATTRIBUTES = "kept the attributes of an unchanged resource of a nested stack"
OWN_NAME = "named a resource of a nested stack without the seed of another one"
RESOLVED = "resolved functions in the conditions of a template"
PARAMETER = re.compile(r"\$\{(\w+)\}")
log = logging.getLogger("corrections")


def correct_nested_stacks() -> None:
    """Replace the two functions by which the engine creates and updates resources of nested stacks."""
    stacks: Any = importlib.import_module("ministack.services.cloudformation")._stacks
    provisioners: Any = importlib.import_module("ministack.services.cloudformation.provisioners")
    create, update = provisioners._provision_resource, provisioners._update_resource
    seed = provisioners._NAME_SEED

    def create_resource(kind: str, logical_id: str, properties: Any, stack: str) -> Any:
        if seed.get() and logical_id not in stacks[stack]["_resources"]:
            log.warning("%s: %s", OWN_NAME, logical_id)
            seed.set("")
        return create(kind, logical_id, properties, stack)

    def update_resource(
        kind: str,
        physical_id: str,
        old: Any,
        new: Any,
        stack: str,
        logical_id: str | None = None,
        attributes: Any = None,
    ) -> Any:
        if attributes is None and old == new:
            attributes = stacks[stack]["_resources"].get(logical_id, {}).get("Attributes")
            if attributes:
                log.warning("%s: %s", KEPT_ATTRIBUTES, logical_id)
        return update(kind, physical_id, old, new, stack, logical_id, attributes)

    provisioners._provision_resource, provisioners._update_resource = create_resource, update_resource


def correct_conditions() -> None:
    """Resolve Fn::Sub and Fn::Split of parameters in conditions, if the engine does not."""
    names = ("engine", "changesets", "handlers", "provisioners", "stacks")
    modules: list[Any] = [importlib.import_module(f"ministack.services.cloudformation.{name}") for name in names]
    evaluate = modules[0]._evaluate_conditions

    def evaluate_conditions(template: dict[str, Any], parameters: Mapping[str, Any]) -> Any:
        try:
            return evaluate(template, parameters)
        except (KeyError, TypeError, ValueError):
            log.warning(RESOLVED)
            return evaluate(template | {"Conditions": resolve(template["Conditions"], parameters)}, parameters)

    for module in modules:
        module._evaluate_conditions = evaluate_conditions


def resolve(expression: Any, parameters: Mapping[str, Any]) -> Any:
    """Return an expression with the values of its functions Fn::Sub and Fn::Split."""
    if isinstance(expression, list):
        return [resolve(each, parameters) for each in expression]
    if not isinstance(expression, dict):
        return expression
    match {name: resolve(each, parameters) for name, each in expression.items()}:
        case {"Fn::Sub": str(text)}:
            return PARAMETER.sub(lambda found: str(parameters[found[1]]["Value"]), text)
        case {"Fn::Split": [separator, str(text)]}:
            return text.split(separator)
        case resolved:
            return resolved


if __name__ == "__main__":
    correct_nested_stacks()
    correct_conditions()
    main()
