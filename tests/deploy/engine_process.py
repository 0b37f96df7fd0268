"""The local engine with two corrections, which `engine_gaps.py` describes: NESTED_ATTRIBUTES and NESTED_NAMES.

It is started with the interpreter of `.venv-deploy`, so it imports only modules that need nothing else. Each use of a
correction is logged, so that `test_engine_gaps.py` notices when the engine no longer needs it.
"""

import importlib
import logging
from typing import Any

from infra.local.engine_process import main

KEPT_ATTRIBUTES = "kept the attributes of an unchanged resource of a nested stack"
OWN_NAME = "named a resource of a nested stack without the seed of another one"
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


if __name__ == "__main__":
    correct_nested_stacks()
    main()
